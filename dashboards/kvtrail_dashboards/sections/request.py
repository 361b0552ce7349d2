"""One request in full: its waterfall, overlapped work, whose work it waited behind, the chain back, its slowest token gaps."""

from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.charts.timeline import hidden_chart, waterfall_chart
from kvtrail_dashboards.compute.figures import duration
from kvtrail_dashboards.compute.names import Names
from kvtrail_dashboards.compute.timeline import Timeline, timeline_of
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch import fetch_why
from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_error
from kvtrail_dashboards.sections.tables import Column, show_table
from kvtrail_dashboards.sections.text import plain

_MS: Final = Column("ms", "ms", "%.2f")


def request_section(view: View, engine: str, names: Names) -> None:
    """Nothing until a request is chosen; a request that cannot be shown does not take the page with it."""
    if view.request is None:
        return
    try:
        timeline = timeline_of(fetch_why(engine, view.request, view.window), names)
    except CollectorError as error:
        show_error(error)
        return
    _waterfall(timeline)
    _around(view, timeline)


def _waterfall(timeline: Timeline) -> None:
    """Where the time to first token went."""
    name = "Time so far, no first token yet" if timeline.censored else "Time to first token"
    st.subheader(f"Timeline of request {plain(timeline.request)}", anchor=False)
    estimate = ""
    if timeline.recompute_estimate_ms is not None:
        estimate = f"; the engine estimated {duration(timeline.recompute_estimate_ms)} for recomputing instead"
    st.markdown(plain(f"{name}: {duration(timeline.total_ms)}{estimate}."))
    if timeline.waterfall:
        st.altair_chart(waterfall_chart(timeline.waterfall), width="stretch")


def _around(view: View, timeline: Timeline) -> None:
    """What happened beside and before."""
    left, right = st.columns(2, gap="large")
    with left:
        _waits(timeline)
        _chain(view, timeline)
    with right:
        _hidden(timeline)
        _gaps(timeline)


def _waits(timeline: Timeline) -> None:
    """The operations that were in service while it stood in a queue."""
    st.markdown("**Whose work it waited behind**")
    if not timeline.waited_on:
        st.caption("It stood in no queue of a tier.")
        return
    show_table(timeline.waited_on, (Column("op", "op"), Column("tier", "tier"), Column("owner", "owner"), _MS))


def _chain(view: View, timeline: Timeline) -> None:
    """Step by step, back to what began it; each step leads to its event."""
    if timeline.chain:
        st.markdown("**How it came to that**")
    with st.container(gap=None):
        for place, link in enumerate(timeline.chain, 1):
            text = f"{place}. {plain(link.label)}"
            if link.name:
                link_to(Place.REQUEST, text, replace(view, event=link.name))
            else:
                st.markdown(text)


def _hidden(timeline: Timeline) -> None:
    """Work that ran at the same time."""
    st.markdown("**Overlapped work** (delayed nobody, does not add up)")
    if timeline.hidden:
        st.altair_chart(hidden_chart(timeline.hidden), width="stretch")
    else:
        st.caption("Nothing ran beside it.")


def _gaps(timeline: Timeline) -> None:
    """The slowest waits between two tokens."""
    if timeline.gaps:
        st.markdown("**Slowest gaps between tokens**")
        show_table(timeline.gaps, (Column("step", "step", "%d"), _MS, Column("mostly", "mostly")))
