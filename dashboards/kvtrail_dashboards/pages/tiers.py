"""Which tier is in the way? How full each is, what waits, what moves, and what getting KV back costs."""

from typing import Final

import streamlit as st

from kvtrail_dashboards.charts.lines import LinePoint, lines_chart
from kvtrail_dashboards.charts.stacks import Slice, stacked_bars
from kvtrail_dashboards.compute.notices import nothing_in_range
from kvtrail_dashboards.compute.tiers import (
    Measure,
    TierPoint,
    cost_lines,
    cost_told,
    move_lines,
    tier_parts,
    tier_points,
    tier_tiles,
)
from kvtrail_dashboards.fetch_pages import fetch_tiers
from kvtrail_dashboards.page_answers import Tiers
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.block import block_section
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.narrowed import whole_caption
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.tables import Column, show_table
from kvtrail_dashboards.sections.tiles import tiles_section

_PART_COLOURS: Final = {"pinned": "#D55E00", "in use": "#0072B2", "evictable": "#56B4E9", "free": "#999999"}


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.TIERS, _draw)


def _draw(frame: Frame) -> None:
    """Levels first: a full tier, or one at which many wait, is seen at once."""
    tiers = fetch_tiers(frame.asked)
    empty = nothing_in_range("No tier was sampled", arrived=bool(tiers.levels.now))
    if empty is not None:
        show_notice(empty)
    else:
        whole_caption(frame.view, "Levels and transfers, as tiers are shared", "tenant", "model")
        tiles_section(tier_tiles(tiers))
        _levels(tiers)
    _moves(tiers)
    _costs(tiers)
    block_section(frame.view, frame.engine)


def _levels(tiers: Tiers) -> None:
    """What takes the room of each tier, and how room and queues went over time."""
    points = tier_points(tiers)
    left, middle, right = st.columns(3, gap="large")
    with left:
        st.subheader("Room, at the end", anchor=False)
        slices = [Slice(part.tier, part.part, part.share * 100, part.told) for part in tier_parts(tiers)]
        st.altair_chart(stacked_bars(slices, _PART_COLOURS, "% of the tier"), width="stretch", key="chart-room")
    with middle:
        st.subheader("Used, over time", anchor=False)
        _over_time(points, lambda point: None if point.used_share is None else point.used_share * 100, "used, % of the tier")
    with right:
        st.subheader("Waiting and in flight", anchor=False)
        _over_time(points, lambda point: point.waiting, "transfers, the most of each point")


def _over_time(points: tuple[TierPoint, ...], measure: Measure, title: str) -> None:
    """One measure of all tiers."""
    lines = [LinePoint(point.at, point.tier, measure(point)) for point in points]
    st.altair_chart(lines_chart(lines, title), width="stretch", key=f"chart-{title}")


def _moves(tiers: Tiers) -> None:
    """Transfers by way, from entering the queue to the end."""
    st.subheader("Transfers", anchor=False)
    lines = move_lines(tiers.moves)
    if not lines:
        st.caption("Nothing moved between tiers in this stretch of time.")
        return
    columns = (
        Column("way", "way"),
        Column("ops", "transfers", "%d"),
        Column("failed", "failed", "%d"),
        Column("open", "not closed", "%d"),
        Column("bytes", "moved", "bytes"),
        Column("p50_ms", "P50, ms", "%.1f"),
        Column("p95_ms", "P95, ms", "%.1f"),
        Column("p99_ms", "P99, ms", "%.1f"),
        Column("queue_p99_ms", "in queue, P99, ms", "%.1f"),
        Column("io_p99_ms", "device, P99, ms", "%.1f"),
    )
    show_table(lines, columns)


def _costs(tiers: Tiers) -> None:
    """Restore against recompute, for the requests that did either."""
    st.subheader("Restore against recompute", anchor=False)
    lines = cost_lines(tiers)
    if not lines:
        st.caption("No request restored or recomputed anything in this stretch of time.")
        return
    columns = (
        Column("how", "a prefix was"),
        Column("requests", "requests", "%d"),
        Column("tokens", "tokens", "%d"),
        Column("p50_ms", "P50, ms", "%.1f"),
        Column("p95_ms", "P95, ms", "%.1f"),
        Column("p99_ms", "P99, ms", "%.1f"),
        Column("per_token_us", "a token, P50, µs", "%.1f"),
    )
    show_table(lines, columns)
    st.caption(
        f"Restored: from a load's queue to its last block. Computed again: its tokens' share of steps. {cost_told(tiers)}"
    )
