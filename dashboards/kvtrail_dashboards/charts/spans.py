"""Bars in time, a row for each place."""

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.axes import UTC, time_axis, time_title
from kvtrail_dashboards.charts.palette import Chart
from kvtrail_dashboards.compute.block import CopySpan

_ORDER: Final = ["gpu", "host", "nvme", "remote", "not said"]
# As the lines over time of the same page have them.
_COLOURS: Final = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#999999"]
_ROW_PX: Final = 34
_AROUND_PX: Final = 60


def spans_chart(spans: Sequence[CopySpan]) -> Chart:
    """Where the copies of a block were, by tier. Draws only."""
    tiers = [tier for tier in _ORDER if any(span.tier == tier for span in spans)]
    frame = pd.DataFrame(
        [(span.tier, span.start, span.end, span.told) for span in spans], columns=["tier", "start", "end", "told"]
    )
    ends = pd.concat([frame["start"], frame["end"]])
    colours = [colour for tier, colour in zip(_ORDER, _COLOURS, strict=True) if tier in tiers]
    drawn: Chart = (
        alt.Chart(frame)
        .mark_bar(height=16)
        .encode(
            y=alt.Y("tier:N", sort=_ORDER, title=None),
            x=alt.X("start:T", scale=UTC, title=time_title(ends), axis=time_axis(ends)),
            x2="end:T",
            color=alt.Color("tier:N", scale=alt.Scale(domain=tiers, range=colours), legend=None),
            tooltip=[
                alt.Tooltip("tier:N", title="tier"),
                alt.Tooltip("start:T", title="from, UTC", format="%Y-%m-%d %H:%M:%S.%L", formatType="utc"),
                alt.Tooltip("end:T", title="to, UTC", format="%Y-%m-%d %H:%M:%S.%L", formatType="utc"),
                alt.Tooltip("told:N", title="end"),
            ],
        )
        .properties(height=_ROW_PX * max(len(tiers), 1) + _AROUND_PX)
    )
    return drawn
