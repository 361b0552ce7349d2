"""The axis of time that charts share: UTC, times of day, as many labels as there is room for."""

from typing import Final

import altair as alt

UTC: Final = alt.Scale(type="utc")


def time_axis(*, of_days: bool = False) -> alt.Axis:
    """Times of day; with the day where the stretch is longer than one."""
    return alt.Axis(format="%m-%d %H:%M" if of_days else "%H:%M:%S", labelOverlap="greedy", labelSeparation=16)
