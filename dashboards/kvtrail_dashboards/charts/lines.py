"""Lines over time, one for each name: told apart by colour and by dash, with a unit on the axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.axes import UTC, time_axis, time_title
from kvtrail_dashboards.charts.palette import Chart

# Okabe and Ito's set without black and yellow, which one of the two grounds would swallow.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3])
_HEIGHT_PX: Final = 260
MOST_LINES: Final = len(COLOURS) * len(_DASHES)
"""So many are told apart: each colour with each dash."""
_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True)
class LinePoint:
    """A value of one line; None breaks the line."""

    at: datetime
    name: str
    value: float | None


def look_of(place: int) -> tuple[str, list[int]]:
    """Colour and dash of the line at a place: the first six differ in both, those after them in one."""
    round_, colour = divmod(place, len(COLOURS))
    return COLOURS[colour], list(_DASHES[(colour + round_) % len(_DASHES)])


def lines_chart(points: Sequence[LinePoint], title: str, *, format_: str = ",.1f") -> Chart:
    """The chart of at most `MOST_LINES` lines, in the order in which their names come. Draws only."""
    names = list(dict.fromkeys(point.name for point in points))[:MOST_LINES]
    rows = [(point.at, point.name, point.value) for point in points if point.name in names]
    frame = pd.DataFrame(rows, columns=["at", "name", "value"])
    looks = [look_of(place) for place in range(len(names))]
    key = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="stroke", symbolSize=400, columns=_COLUMNS)
    drawn: Chart = (
        alt.Chart(frame)
        .mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=2)
        .encode(
            x=alt.X("at:T", scale=UTC, title=time_title(frame["at"]), axis=time_axis(frame["at"])),
            y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=True)),
            color=alt.Color("name:N", scale=alt.Scale(domain=names, range=[colour for colour, _ in looks]), legend=key),
            strokeDash=alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=[dash for _, dash in looks]), legend=key),
            tooltip=[
                alt.Tooltip("at:T", title="UTC", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
                alt.Tooltip("name:N", title="of"),
                alt.Tooltip("value:Q", title=title, format=format_),
            ],
        )
        .properties(height=_HEIGHT_PX)
    )
    return drawn
