"""Can I trust the record? The balance of events, holes, drops, and how fresh the streams are."""

import streamlit as st

from kvtrail_dashboards.answers import Loss
from kvtrail_dashboards.charts.lines import MOST_LINES, LinePoint, lines_chart
from kvtrail_dashboards.compute.books import of_rank
from kvtrail_dashboards.compute.notices import notices_of_losses
from kvtrail_dashboards.compute.rates import rate_points
from kvtrail_dashboards.compute.recorder import drop_lines, expired_told, gap_lines, recorder_tiles, stream_lines
from kvtrail_dashboards.fetch import fetch_loss
from kvtrail_dashboards.fetch_pages import fetch_recorder
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.tables import Column, cut_caption, show_table
from kvtrail_dashboards.sections.tiles import tiles_section


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.RECORDER, _draw)


def _draw(frame: Frame) -> None:
    """The books first; then who keeps them."""
    loss, recorder = of_rank(fetch_loss(), frame.view.rank), fetch_recorder(frame.asked)
    for notice in notices_of_losses(loss, frame.engine.engine):
        show_notice(notice)
    tiles_section(recorder_tiles(recorder, loss, frame.engine.engine))
    st.subheader("Events a second", anchor=False)
    points = [LinePoint(point.at, point.stream, point.events_per_s) for point in rate_points(recorder)]
    if points:
        st.altair_chart(lines_chart(points, "events a second", format_=",.0f"), width="stretch", key="chart-rate")
        ranks = len({point.name for point in points})
        if ranks > MOST_LINES:
            st.caption(f"The first {MOST_LINES} of {ranks:,} ranks; choose another above to see it.")
    else:
        st.caption("No heartbeat in this stretch of time.")
    st.subheader("Streams", anchor=False)
    columns = (
        Column("stream", "engine / epoch / rank"),
        Column("state", "state"),
        *(
            Column(name, name.replace("_", " "), "localized")
            for name in ("produced", "stored", "dropped", "in_flight", "unaccounted")
        ),
        Column("heard", "last heard"),
        Column("beat", "last heartbeat"),
        Column("delay_ms", "on the way, ms", "%.1f"),
    )
    show_table(stream_lines(recorder, loss), columns)
    cut_caption(recorder.streams_left_out, "streams", "those last heard of")
    _holes(loss, frame.engine.engine)


def _holes(loss: Loss, engine: str) -> None:
    """What is missing: what was dropped and said so, and what nobody explains."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Dropped, and accounted for", anchor=False)
        drops = drop_lines(loss, engine)
        if drops:
            show_table(
                drops,
                (
                    Column("stream", "engine / epoch / rank"),
                    Column("stage", "stage"),
                    Column("reason", "reason"),
                    Column("events", "events", "localized"),
                ),
            )
        else:
            st.caption("Nothing was dropped.")
        expired = expired_told(loss, engine)
        if expired:
            st.caption(expired)
    with right:
        st.subheader("Holes that nobody explains", anchor=False)
        gaps = gap_lines(loss, engine)
        if gaps:
            show_table(
                gaps,
                (
                    Column("stream", "engine / epoch / rank"),
                    Column("first", "from seq", "%d"),
                    Column("last", "to seq", "%d"),
                    Column("events", "events", "localized"),
                ),
            )
        else:
            st.caption("There are none.")
