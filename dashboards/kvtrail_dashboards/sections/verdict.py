"""The verdict: what happened, what to do, how sure that is, and the figures it stands on."""

from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.compute.names import Names
from kvtrail_dashboards.compute.notices import no_spike, not_identified
from kvtrail_dashboards.compute.verdict_words import VerdictWords, what_happened, words_of
from kvtrail_dashboards.compute.wall import wall_time
from kvtrail_dashboards.fetch import Explanation
from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.tables import show_pairs
from kvtrail_dashboards.sections.text import plain

_MOST_EVENTS: Final = 10


def verdict_section(explanation: Explanation, names: Names, view: View, slow_stretches: int = 0) -> None:
    """The verdicts by share, or the reason why there is none; `slow_stretches` are those that there are to choose from."""
    attribution = explanation.attribution
    happened = what_happened(attribution, wall_time(explanation.series))
    if happened:
        st.markdown(plain(happened))
    show_notice(no_spike(attribution, slow_stretches))
    show_notice(not_identified(attribution))
    for verdict in attribution.verdicts:
        _show(words_of(verdict, names), replace(view, engine=explanation.engine))


def _show(words: VerdictWords, view: View) -> None:
    """One verdict."""
    with st.container(border=True):
        text, figures = st.columns([3, 2], vertical_alignment="center")
        with text:
            where = f" :gray[{plain(words.where)}]" if words.where else ""
            st.markdown(f"`{words.code}`{where}")
            st.markdown(f"#### {plain(words.headline)}")
            st.markdown(f"{plain(words.detail)}  \n**What to do:** {plain(words.action)}")
        with figures:
            _figures(words)
        with st.expander("Evidence"):
            _evidence(words, view)


def _figures(words: VerdictWords) -> None:
    """Share, certainty, and the basis of both."""
    share, certainty = st.columns(2)
    share.metric("Share of the excess", words.share)
    certainty.metric("Certainty", words.certainty)
    st.caption(f"Basis: {words.basis}. {words.certainty_why}")


def _evidence(words: VerdictWords, view: View) -> None:
    """The figures and the events behind a verdict."""
    figures, events = st.columns(2)
    with figures:
        show_pairs(words.evidence, "figure")
    with events:
        if words.also:
            st.caption(f"Also explained by this: {plain(', '.join(words.also))}")
        if words.events:
            st.caption("Events (engine/epoch/rank/seq)")
        for event in words.events[:_MOST_EVENTS]:
            link_to(Place.REQUEST, plain(event), replace(view, event=event))
