"""One request as a waterfall; and, apart, the work that overlapped it."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from kvtrail_dashboards.charts.palette import NEUTRAL, Chart, family_colour, height_px
from kvtrail_dashboards.compute.timeline import Bar


def waterfall_chart(bars: Sequence[Bar]) -> Chart:
    """The parts of the time to first token, each where the one before ends; they add up. Draws only."""
    return _chart(bars, "ms since arrival; parts stand in the order of the ledger, one after the other", opacity=1.0)


def hidden_chart(bars: Sequence[Bar]) -> Chart:
    """Work that ran at the same time and delayed nobody; it does not add up. Draws only."""
    return _chart(bars, "ms of work that overlapped others", opacity=0.55)


def _chart(bars: Sequence[Bar], title: str, *, opacity: float) -> Chart:
    """A row for each part, with its length beside it."""
    rows = [
        (place, bar.label, bar.family.value, bar.start_ms, bar.end_ms, bar.ms, bar.share, f"{bar.ms:,.1f} ms")
        for place, bar in enumerate(bars)
    ]
    names = ["place", "label", "family", "start_ms", "end_ms", "ms", "share", "told"]
    base = alt.Chart(pd.DataFrame(rows, columns=names))
    axis = alt.Y("label:N", sort=alt.SortField("place"), title=None, axis=alt.Axis(labelLimit=260, labelOverlap=False))
    # Room at the right for the figure beside the last bar.
    reach = max((bar.end_ms for bar in bars), default=0.0) * 1.12 or 1.0
    scale = alt.Scale(domain=[0, reach], nice=False)
    drawn = base.mark_bar(height=16, opacity=opacity).encode(
        y=axis,
        x=alt.X("start_ms:Q", title=title, scale=scale),
        x2="end_ms:Q",
        color=family_colour([bar.family for bar in bars]),
        tooltip=[
            alt.Tooltip("label:N", title="part"),
            alt.Tooltip("ms:Q", title="ms", format=",.3f"),
            alt.Tooltip("share:Q", title="share of the time to first token", format=".1%"),
        ],
    )
    told = base.mark_text(align="left", dx=5, color=NEUTRAL).encode(y=axis, x=alt.X("end_ms:Q", scale=scale), text="told:N")
    return alt.layer(drawn, told).properties(height=height_px(len(bars)))
