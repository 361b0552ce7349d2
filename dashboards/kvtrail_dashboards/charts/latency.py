"""TTFT percentiles over time, with the spike and its reference marked; other spikes can be clicked, any stretch be drawn."""

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.axes import UTC, time_axis, time_title
from kvtrail_dashboards.charts.palette import NEUTRAL, PERCENTILE, SPIKE, Chart
from kvtrail_dashboards.compute.latency import Band, LatencyView

PICKED: Final = "picked"
DRAWN: Final = "drawn"
_NAMES = ["P99", "P95", "P50"]
_HEIGHT_PX: Final = 320


def latency_chart(view: LatencyView) -> Chart:
    """The chart. Draws only; at most 150 points a line."""
    return alt.layer(*_marks(view), _lines(view)).properties(height=_HEIGHT_PX)


def latency_picker(view: LatencyView, spikes: Sequence[Band]) -> Chart:
    """The chart, of which each spike can be clicked (`PICKED` holds its `place`) and any stretch drawn (`DRAWN`, over `at`)."""
    lines = _lines(view).add_params(alt.selection_interval(name=DRAWN, encodings=["x"]))
    spots = [_spots(spikes)] if spikes else []
    return alt.layer(*_marks(view), *spots, lines).properties(height=_HEIGHT_PX)


def _marks(view: LatencyView) -> list[alt.Chart]:
    """The stretches that are compared."""
    return [_bands(view), _band_names(view)] if view.bands else []


def _spots(spikes: Sequence[Band]) -> alt.Chart:
    """A ground with a dashed border for each spike that can be explained."""
    rows = [(place, band.start, band.end) for place, band in enumerate(spikes)]
    frame = pd.DataFrame(rows, columns=["place", "start", "end"])
    picked = alt.selection_point(name=PICKED, fields=["place"], on="click", clear=False)
    drawn: alt.Chart = (
        alt.Chart(frame)
        .mark_rect(fill=SPIKE, fillOpacity=0.08, stroke=SPIKE, strokeOpacity=0.7, strokeDash=[4, 3], cursor="pointer")
        .encode(
            x=alt.X("start:T", scale=UTC),
            x2="end:T",
            tooltip=[
                alt.Tooltip("start:T", title="explain the spike from", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
                alt.Tooltip("end:T", title="to, UTC", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
            ],
        )
        .add_params(picked)
    )
    return drawn


def _lines(view: LatencyView) -> alt.Chart:
    """Three lines, told apart by dash and weight as well as by strength of colour."""
    rows = [
        {"at": point.at, "name": name, "ms": ms, "requests": point.requests, "censored": point.censored}
        for point in view.points
        for name, ms in zip(_NAMES, (point.p99_ms, point.p95_ms, point.p50_ms), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["at", "name", "ms", "requests", "censored"])
    # One legend for all three encodings: where they differ, Vega shows none.
    key = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="stroke", symbolSize=500)
    drawn: alt.Chart = (
        alt.Chart(frame)
        .mark_line(color=PERCENTILE, point=alt.OverlayMarkDef(color=PERCENTILE, size=14))
        .encode(
            x=alt.X("at:T", scale=UTC, title=f"time of arrival, {time_title(frame['at'])}", axis=time_axis(frame["at"])),
            y=alt.Y("ms:Q", title=view.title, scale=alt.Scale(zero=True)),
            strokeDash=alt.StrokeDash("name:N", sort=_NAMES, legend=key),
            strokeWidth=alt.StrokeWidth("name:N", sort=_NAMES, scale=alt.Scale(range=[2.5, 1.5, 1.5]), legend=key),
            opacity=alt.Opacity("name:N", sort=_NAMES, scale=alt.Scale(range=[1.0, 0.85, 0.85]), legend=key),
            tooltip=[
                alt.Tooltip("at:T", title="UTC", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
                alt.Tooltip("name:N", title="percentile"),
                alt.Tooltip("ms:Q", title=view.title, format=",.1f"),
                alt.Tooltip("requests:Q", title="requests"),
                alt.Tooltip("censored:Q", title="without first token"),
            ],
        )
    )
    return drawn


def _bands(view: LatencyView) -> alt.Chart:
    """The stretches that are compared, as grounds."""
    drawn: alt.Chart = (
        _band_base(view)
        .mark_rect(opacity=0.14)
        .encode(
            x=alt.X("start:T", scale=UTC),
            x2="end:T",
            color=alt.when(alt.datum.name == "spike").then(alt.value(SPIKE)).otherwise(alt.value(NEUTRAL)),
        )
    )
    return drawn


def _band_names(view: LatencyView) -> alt.Chart:
    """Their names, at the top of each."""
    drawn: alt.Chart = (
        _band_base(view)
        .mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=12, color=NEUTRAL)
        .encode(x=alt.X("start:T", scale=UTC), y=alt.value(0), text="told:N")
    )
    return drawn


def _band_base(view: LatencyView) -> alt.Chart:
    """One row a stretch."""
    rows = [(band.name, band.start, band.end, band.told or band.name) for band in view.bands]
    return alt.Chart(pd.DataFrame(rows, columns=["name", "start", "end", "told"]))
