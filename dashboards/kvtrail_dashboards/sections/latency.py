"""P99 over time, and the choice of another stretch to explain."""

from dataclasses import replace
from datetime import datetime, timedelta

import streamlit as st

from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.compute.latency import OF_DAYS_FROM_MS, LatencyView, latency_view
from kvtrail_dashboards.compute.wall import WallTime, wall_time
from kvtrail_dashboards.fetch import Explanation
from kvtrail_dashboards.link import View
from kvtrail_dashboards.sections.steer import go_to

_STRETCH_KEY = "stretch"


def latency_section(view: View, explanation: Explanation) -> None:
    """The chart with its marks, and what its points are."""
    attribution = explanation.attribution
    latency = latency_view(explanation.series, attribution.window, attribution.reference)
    st.subheader("Time to first token", anchor=False)
    if latency.measured:
        st.altair_chart(latency_chart(latency), width="stretch")
    st.caption(_points_told(latency))
    _window_choice(view, explanation, latency)


def _points_told(latency: LatencyView) -> str:
    """What a point stands for."""
    without = f", {latency.censored:,} of them without a first token" if latency.censored else ""
    return f"One point every {latency.bucket_ms / 1_000:g} s; {latency.requests:,} requests in all{without}."


def _window_choice(view: View, explanation: Explanation, latency: LatencyView) -> None:
    """Keep the window in the link, go back to the searched one, or take another."""
    wall = wall_time(explanation.series)
    found = explanation.attribution.window
    row = st.container(horizontal=True)
    if view.window is not None:
        row.button("Back to the latest spike", on_click=go_to, args=(replace(view, window=None, request=None),))
    elif found is not None:
        row.button("Keep this window in the link", on_click=go_to, args=(view.with_window(found.start_ns, found.end_ns),))
    with row.popover("Explain another stretch"):
        _stretch_choice(view, latency, wall)


def _stretch_choice(view: View, latency: LatencyView, wall: WallTime) -> None:
    """Two ends on the axis of the chart, as UTC."""
    step = timedelta(milliseconds=latency.bucket_ms)
    first = latency.points[0].at.replace(tzinfo=None) - step / 2
    last = max(latency.points[-1].at.replace(tzinfo=None) + step / 2, first + step)
    chosen = st.slider("UTC", first, last, _ends(latency, first, last), step=step, format=_format(latency), key=_STRETCH_KEY)
    start, end = (wall.monotonic_ns(at.replace(tzinfo=latency.points[0].at.tzinfo)) for at in chosen)
    if start >= end:
        st.caption("Choose an end after the start.")
        return
    st.button("Explain it", on_click=go_to, args=(replace(view, request=None).with_window(start, end),))


def _format(latency: LatencyView) -> str:
    """Times of day; with the day where the stretch is longer than one."""
    return "MM-DD HH:mm" if latency.bucket_ms >= OF_DAYS_FROM_MS else "HH:mm:ss"


def _ends(latency: LatencyView, first: datetime, last: datetime) -> tuple[datetime, datetime]:
    """The spike, where there is one, else everything."""
    spike = next((band for band in latency.bands if band.name == "spike"), None)
    if spike is None:
        return first, last
    start, end = max(spike.start.replace(tzinfo=None), first), min(spike.end.replace(tzinfo=None), last)
    return (start, end) if start < end else (first, last)
