"""The excess of the tail by component and tier, each with its interval."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.palette import NEUTRAL, Chart, family_colour, height_px
from kvtrail_dashboards.compute.excess import ExcessBar


def excess_chart(bars: Sequence[ExcessBar]) -> Chart:
    """The chart: a bar for each component, a thin line for its interval. Draws only."""
    order = [bar.label for bar in bars]
    axis = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, labelOverlap=False))
    base = alt.Chart(_frame(bars))
    value = base.mark_bar(height=16).encode(
        y=axis,
        x=alt.X("excess_ms:Q", title="excess in the mean of the tail, ms"),
        color=family_colour([bar.family for bar in bars]),
        tooltip=[
            alt.Tooltip("label:N", title="component"),
            alt.Tooltip("excess_ms:Q", title="excess, ms", format=",.1f"),
            alt.Tooltip("low_ms:Q", title="interval from, ms", format=",.1f"),
            alt.Tooltip("high_ms:Q", title="interval to, ms", format=",.1f"),
            alt.Tooltip("share:Q", title="share", format=".0%"),
        ],
    )
    interval = base.mark_rule(strokeWidth=2, color=NEUTRAL).encode(y=axis, x="low_ms:Q", x2="high_ms:Q")
    ends = [base.mark_tick(thickness=2, size=10, color=NEUTRAL).encode(y=axis, x=f"{end}:Q") for end in ("low_ms", "high_ms")]
    return alt.layer(value, interval, *ends).properties(height=height_px(len(bars)))


def _frame(bars: Sequence[ExcessBar]) -> pd.DataFrame:
    """One row a bar."""
    columns = ["label", "family", "excess_ms", "low_ms", "high_ms", "share"]
    rows = [(bar.label, bar.family.value, bar.excess_ms, bar.low_ms, bar.high_ms, bar.share) for bar in bars]
    return pd.DataFrame(rows, columns=columns)
