"""Which spike the page is about: the list of all that were found, for keyboard and mouse. The chart offers the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.compute.spikes import Span, SpikeChoice, place_of_spike
from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain

_KEY: Final = "spike-choice"
_SEARCHED: Final = -1
_OTHER: Final = -2
_FURTHER: Final = ":material/arrow_forward:"


def spike_choice(view: View, choices: Sequence[SpikeChoice]) -> None:
    """A list of the slow stretches; what is chosen goes into the link. Nothing where there are none and nothing is held."""
    told = {_SEARCHED: "the costliest, searched for anew with each answer"}
    told |= {place: choice.told for place, choice in enumerate(choices)}
    place = place_of_spike(choices, view.window)
    chosen = _SEARCHED if view.window is None else _OTHER if place is None else place
    if chosen == _OTHER:
        told[_OTHER] = "another stretch of time, which the link holds"
    if len(told) == 1:
        return

    def choose() -> None:
        picked = st.session_state[_KEY]
        if picked != _OTHER:
            go_to(of_spike(view, None if picked == _SEARCHED else choices[picked].window))

    st.session_state[_KEY] = chosen
    st.selectbox("Spike to explain", list(told), key=_KEY, on_change=choose, format_func=lambda value: told[value])


def slow_stretches(view: View, choices: Sequence[SpikeChoice], name: str) -> None:
    """Links to each, with a word on how slow it was; nothing where there are none."""
    if not choices:
        return
    with st.container(border=True, gap=None):
        st.markdown(f":orange[:material/warning:] **{name}**; each leads to its cause")
        for choice in choices:
            link_to(Place.SPIKE, plain(choice.told), view.with_window(*choice.window), icon=_FURTHER)


def of_spike(view: View, window: Span | None) -> View:
    """The view of another spike: requests and events that were picked are of the one before."""
    other = replace(view, window=None, request=None, event=None)
    return other if window is None else other.with_window(*window)
