"""Why was it slow? P99 over time, the spike's verdict and excess, the slowest requests, and one of them in full."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.answers import Series
from kvtrail_dashboards.compute.notices import nothing_yet, notices
from kvtrail_dashboards.compute.spikes import SpikeChoice, spike_choices
from kvtrail_dashboards.compute.wall import wall_time
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch import Explanation, fetch_explanation, fetch_loss, fetch_series
from kvtrail_dashboards.fetch_pages import fetch_spikes
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.basis import basis_section
from kvtrail_dashboards.sections.excess import excess_section
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.latency import latency_preview, latency_section
from kvtrail_dashboards.sections.notice import show_error, show_notice
from kvtrail_dashboards.sections.request import request_section
from kvtrail_dashboards.sections.spikes import spike_choice
from kvtrail_dashboards.sections.verdict import verdict_section
from kvtrail_dashboards.sections.worst import around_section, exemplars_section, worst_section

_EXPLAINED: Final = "explained"


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.SPIKE, _draw)


def _draw(frame: Frame) -> None:
    """The sections, in the order in which somebody in a hurry needs them; the chart stands while the collector compares."""
    engine, view = frame.engine.engine, frame.view
    loss, series = fetch_loss(), fetch_series(engine)
    empty = nothing_yet(loss, series)
    if empty is not None:
        show_notice(empty)
        return
    spikes = _spikes(engine, series)
    spike_choice(view, spikes)
    # What is drawn anew keeps its chart until it has the next: an emptied place would flicker.
    known = st.session_state.get(_EXPLAINED) == (engine, view.window)
    top, chart = st.container(), st.container() if known else st.empty()
    if not known:
        with chart.container():
            latency_preview(series)
    with top:
        explanation = fetch_explanation(engine, view.window, series)
        for notice in notices(loss, engine, explanation.attribution):
            show_notice(notice)
        verdict_section(explanation, frame.names, view, 0 if view.window else len(spikes))
        exemplars_section(view, explanation)
        around_section(view, explanation)
        basis_section(explanation)
    with chart if known else chart.container():
        latency_section(view, series, explanation.attribution, spikes)
    st.session_state[_EXPLAINED] = engine, view.window
    _details(frame, explanation)


def _details(frame: Frame, explanation: Explanation) -> None:
    """What the verdict stands on, and the requests behind it."""
    engine, view = frame.engine.engine, frame.view
    excess_section(explanation, frame.names)
    worst_section(view, explanation)
    request_section(replace(view, engine=engine), engine, frame.names)


def _spikes(engine: str, series: Series) -> Sequence[SpikeChoice]:
    """What there is to choose from; a collector that cannot search in time takes no more than the choice."""
    try:
        return spike_choices(fetch_spikes(engine).spikes, wall_time(series))
    except CollectorError as error:
        show_error(error)
        return ()
