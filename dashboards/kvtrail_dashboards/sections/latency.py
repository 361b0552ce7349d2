"""P99 over time, on which a spike is clicked or any stretch drawn, and the choice of a stretch by keyboard."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import streamlit as st

from kvtrail_dashboards.answers import Attribution, Series
from kvtrail_dashboards.charts.latency import DRAWN, PICKED, latency_chart, latency_picker
from kvtrail_dashboards.compute.latency import OF_DAYS_FROM_MS, LatencyView, latency_view
from kvtrail_dashboards.compute.spikes import Span, SpikeChoice
from kvtrail_dashboards.compute.wall import WallTime, wall_time
from kvtrail_dashboards.link import View
from kvtrail_dashboards.sections.spikes import of_spike
from kvtrail_dashboards.sections.steer import go_to

_STRETCH_KEY: Final = "stretch"
_MS_A_SECOND: Final = 1_000


def latency_preview(series: Series) -> None:
    """The chart alone, while nobody knows yet what is to be marked."""
    latency = latency_view(series, None, None)
    st.subheader("Time to first token", anchor=False)
    if latency.measured:
        st.altair_chart(latency_chart(latency), width="stretch")
    st.caption(_points_told(latency))


def latency_section(view: View, series: Series, attribution: Attribution, spikes: Sequence[SpikeChoice]) -> None:
    """The chart with its marks, and what its points are."""
    latency = latency_view(series, attribution.window, attribution.reference)
    drawn = None
    st.subheader("Time to first token", anchor=False)
    if latency.measured:
        drawn = _picker(view, latency, wall_time(series), spikes)
    st.caption(f"{_points_told(latency)} Click a marked spike to explain it, or draw over any stretch.")
    _window_choice(view, series, attribution, latency, drawn)


def _picker(view: View, latency: LatencyView, wall: WallTime, spikes: Sequence[SpikeChoice]) -> Span | None:
    """The chart; a click goes to that spike at once. What was drawn over is given back, to be confirmed."""
    # A chart of its own for each window: what was clicked in the view before is not picked in this one.
    key = f"latency-{view.window}"

    def choose() -> None:
        picked = [one["place"] for one in _selected(key).get(PICKED) or [] if "place" in one]
        if picked:  # a click beside every spike comes without a place
            go_to(of_spike(view, spikes[int(picked[0])].window))

    chart = latency_picker(latency, [choice.band for choice in spikes])
    st.altair_chart(chart, width="stretch", key=key, on_select=choose)
    ends = (_selected(key).get(DRAWN) or {}).get("at") or []
    if not ends:
        return None
    start, end = (wall.monotonic_ns(datetime.fromtimestamp(at / _MS_A_SECOND, UTC)) for at in (min(ends), max(ends)))
    return (start, end) if start < end else None


def _selected(key: str) -> Mapping[str, Any]:
    """What is selected on a chart, as Streamlit tells it: a list of points, and a range by the name of its field."""
    state = st.session_state.get(key)
    selection: Mapping[str, Any] = state["selection"] if state else {}
    return selection


def _points_told(latency: LatencyView) -> str:
    """What a point stands for."""
    without = f", {latency.censored:,} of them without a first token" if latency.censored else ""
    return f"One point every {latency.bucket_ms / 1_000:g} s; {latency.requests:,} requests in all{without}."


def _window_choice(view: View, series: Series, attribution: Attribution, latency: LatencyView, drawn: Span | None) -> None:
    """Explain what was drawn, keep the window in the link, go back to the searched one, or take another."""
    wall = wall_time(series)
    found = attribution.window
    row = st.container(horizontal=True)
    if drawn is not None:
        start, end = (wall.at(at) for at in drawn)
        label = f"Explain {start:%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
        row.button(label, type="primary", key="explain-drawn", on_click=go_to, args=(of_spike(view, drawn),))
    if view.window is not None:
        row.button("Back to the costliest spike", on_click=go_to, args=(of_spike(view, None),))
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
    start, end = (wall.monotonic_ns(at.replace(tzinfo=UTC)) for at in chosen)
    if start >= end:
        st.caption("Choose an end after the start.")
        return
    st.button("Explain it", on_click=go_to, args=(of_spike(view, (start, end)),))


def _format(latency: LatencyView) -> str:
    """Day and time of day; to the second where the stretch is no longer than a day."""
    return "MM-DD HH:mm" if latency.bucket_ms >= OF_DAYS_FROM_MS else "MM-DD HH:mm:ss"


def _ends(latency: LatencyView, first: datetime, last: datetime) -> tuple[datetime, datetime]:
    """The spike, where there is one, else everything."""
    spike = next((band for band in latency.bands if band.name == "spike"), None)
    if spike is None:
        return first, last
    start, end = max(spike.start.replace(tzinfo=None), first), min(spike.end.replace(tzinfo=None), last)
    return (start, end) if start < end else (first, last)
