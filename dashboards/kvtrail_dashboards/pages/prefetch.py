"""Does fetching ahead pay? What became of prefetched blocks, when, and why they were in vain."""

from typing import Final

import streamlit as st

from kvtrail_dashboards.charts.stacks import Slice, TimeSlice, stacked_bars, stacked_time
from kvtrail_dashboards.compute.notices import Level, Notice
from kvtrail_dashboards.compute.prefetch import loss_lines, outcome_points, outcomes, prefetch_tiles
from kvtrail_dashboards.fetch_pages import fetch_prefetch
from kvtrail_dashboards.page_answers import PrefetchFlow
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.narrowed import whole_caption
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.tables import Column, cut_caption, show_table
from kvtrail_dashboards.sections.tiles import tiles_section

_COLOURS: Final = {"used": "#009E73", "wasted": "#D55E00", "cancelled": "#CC79A7", "open": "#999999"}


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.PREFETCH, _draw)


def _draw(frame: Frame) -> None:
    """Whether it pays, then where it does not."""
    flow = fetch_prefetch(frame.asked)
    if not flow.total.issued:
        what = "Nothing was fetched ahead in this stretch of time."
        show_notice(Notice(Level.NOTE, what, "The engine may have it switched off; choose another stretch of time above."))
    else:
        tiles_section(prefetch_tiles(flow))
        _flow(flow)
        _losses(frame, flow)
    _not_issued(frame, flow)


def _flow(flow: PrefetchFlow) -> None:
    """What became of what was issued, in all and over time."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader("What became of it", anchor=False)
        slices = [Slice("blocks", name, count, f"{count:,} blocks") for name, count in outcomes(flow.total) if count]
        st.altair_chart(stacked_bars(slices, _COLOURS, "blocks issued"), width="stretch", key="chart-outcomes")
    with right:
        st.subheader("By time of issue", anchor=False)
        points = [TimeSlice(point.start, point.end, point.outcome, point.blocks) for point in outcome_points(flow)]
        st.altair_chart(stacked_time(points, _COLOURS, "blocks issued"), width="stretch", key="chart-flow")


def _losses(frame: Frame, flow: PrefetchFlow) -> None:
    """Why, from where, and whose."""
    lines = loss_lines(flow, frame.names)
    st.subheader("In vain", anchor=False)
    if not lines:
        st.caption("No block was wasted or cancelled.")
        return
    columns = (
        Column("outcome", "outcome"),
        Column("reason", "reason"),
        Column("tier", "from tier"),
        Column("tenant", "for tenant"),
        Column("blocks", "blocks", "%d"),
        Column("bytes", "read", "bytes"),
        Column("share", "share of all issued", "share"),
    )
    show_table(lines, columns)
    cut_caption(flow.losses_left_out, "rows", "those of most blocks")


def _not_issued(frame: Frame, flow: PrefetchFlow) -> None:
    """What the engine held back."""
    if flow.not_issued:
        st.subheader("Not even issued", anchor=False)
        told = [f"{one.blocks:,} × {(one.reason or 'no reason given').replace('_', ' ')}" for one in flow.not_issued]
        st.caption("; ".join(told))
        whole_caption(frame.view, "What was not issued", "tenant", "model")
