"""The axis of time that charts share: UTC, times of day and which day, as many labels as there is room for."""

from typing import Final

import altair as alt
import pandas as pd

UTC: Final = alt.Scale(type="utc")
_SHORT: Final = pd.Timedelta(hours=1)


def time_axis(times: "pd.Series[pd.Timestamp]") -> alt.Axis:
    """Times of day, to the second; with the day at each label where these times are of several days."""
    of_day = "%H:%M:%S" if _is_one_day(times) or times.max() - times.min() <= _SHORT else "%H:%M"
    form = of_day if _is_one_day(times) else f"%m-%d {of_day}"
    return alt.Axis(format=form, labelOverlap="greedy", labelSeparation=16)


def time_title(times: "pd.Series[pd.Timestamp]") -> str:
    """That times are UTC, and which day it is where they are all of one."""
    return f"UTC, {times.min():%Y-%m-%d}" if _is_one_day(times) else "UTC"


def _is_one_day(times: "pd.Series[pd.Timestamp]") -> bool:
    """Whether all times are of one day; those of a chart without any are of none."""
    return not times.empty and times.min().date() == times.max().date()
