"""Lines over time, one for each name: told apart by colour and by dash, with a unit on the axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.axes import UTC, time_axis
from kvtrail_dashboards.charts.palette import Chart

# Okabe and Ito's set without black and yellow, which one of the two grounds would swallow.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3])
_HEIGHT_PX: Final = 260
MOST_LINES: Final = len(COLOURS)


@dataclass(frozen=True, slots=True)
class LinePoint:
    """A value of one line; None breaks the line."""

    at: datetime
    name: str
    value: float | None


def lines_chart(points: Sequence[LinePoint], title: str, *, format_: str = ",.1f") -> Chart:
    """The chart of at most `MOST_LINES` lines, in the order in which their names come. Draws only."""
    names = list(dict.fromkeys(point.name for point in points))[:MOST_LINES]
    rows = [(point.at, point.name, point.value) for point in points if point.name in names]
    frame = pd.DataFrame(rows, columns=["at", "name", "value"])
    key = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="stroke", symbolSize=400)
    drawn: Chart = (
        alt.Chart(frame)
        .mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=2)
        .encode(
            x=alt.X("at:T", scale=UTC, title="UTC", axis=time_axis()),
            y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=True)),
            color=alt.Color("name:N", scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])), legend=key),
            strokeDash=alt.StrokeDash(
                "name:N", scale=alt.Scale(domain=names, range=[list(dash) for dash in _DASHES[: len(names)]]), legend=key
            ),
            tooltip=[
                alt.Tooltip("at:T", title="UTC", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
                alt.Tooltip("name:N", title="of"),
                alt.Tooltip("value:Q", title=title, format=format_),
            ],
        )
        .properties(height=_HEIGHT_PX)
    )
    return drawn
