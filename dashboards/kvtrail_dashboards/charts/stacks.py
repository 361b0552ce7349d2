"""Shares of a whole: one bar for each row, cut by outcome; and the same over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.axes import UTC, time_axis, time_title
from kvtrail_dashboards.charts.palette import Chart

_ROW_PX: Final = 44
_AROUND_PX: Final = 90
_HEIGHT_PX: Final = 260


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of one bar, in the order in which parts are stacked."""

    row: str
    part: str
    amount: float
    told: str


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """One part of what happened in one bucket of time."""

    start: datetime
    end: datetime
    part: str
    amount: float


def stacked_bars(slices: Sequence[Slice], colours: Mapping[str, str], title: str) -> Chart:
    """A bar for each row. Draws only."""
    rows = list(dict.fromkeys(piece.row for piece in slices))
    frame = pd.DataFrame(
        [(one.row, one.part, one.amount, one.told) for one in slices], columns=["row", "part", "amount", "told"]
    )
    frame["place"] = [list(colours).index(part) for part in frame["part"]]
    drawn: Chart = (
        alt.Chart(frame)
        .mark_bar(height=22)
        .encode(
            y=alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labelLimit=200)),
            x=alt.X("amount:Q", title=title, stack=True),
            color=_colour(colours, list(frame["part"])),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("row:N", title="of"),
                alt.Tooltip("part:N", title="part"),
                alt.Tooltip("told:N", title="amount"),
            ],
        )
        .properties(height=_ROW_PX * len(rows) + _AROUND_PX)
    )
    return drawn


def stacked_time(slices: Sequence[TimeSlice], colours: Mapping[str, str], title: str) -> Chart:
    """A bar for each bucket of time. Draws only."""
    frame = pd.DataFrame(_piled(slices, list(colours)), columns=["start", "end", "part", "amount", "low", "high"])
    ends = pd.concat([frame["start"], frame["end"]])
    drawn: Chart = (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=alt.X("start:T", scale=UTC, title=time_title(ends), axis=time_axis(ends)),
            x2="end:T",
            y=alt.Y("low:Q", title=title),
            y2="high:Q",
            color=_colour(colours, list(frame["part"])),
            tooltip=[
                alt.Tooltip("start:T", title="from, UTC", format="%Y-%m-%d %H:%M:%S", formatType="utc"),
                alt.Tooltip("part:N", title="part"),
                alt.Tooltip("amount:Q", title=title, format=",.0f"),
            ],
        )
        .properties(height=_HEIGHT_PX)
    )
    return drawn


def _piled(slices: Sequence[TimeSlice], order: Sequence[str]) -> Iterator[tuple[datetime, datetime, str, float, float, float]]:
    """Each slice from where those below it end: Vega piles up bars of points in time, not of stretches."""
    reached: dict[datetime, float] = {}
    for one in sorted(slices, key=lambda one: (one.start, order.index(one.part))):
        low = reached.get(one.start, 0.0)
        reached[one.start] = low + one.amount
        yield one.start, one.end, one.part, one.amount, low, low + one.amount


def _colour(colours: Mapping[str, str], drawn: Sequence[str]) -> alt.Color:
    """The colour of each part that is drawn."""
    shown = [name for name in colours if name in drawn]
    scale = alt.Scale(domain=shown, range=[colours[name] for name in shown])
    return alt.Color("part:N", scale=scale, legend=alt.Legend(title=None, orient="top", direction="horizontal"))
