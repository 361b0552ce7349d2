"""The excess by component and tier, and whose work was in the way."""

import pandas as pd
import streamlit as st

from kvtrail_dashboards.charts.excess import excess_chart
from kvtrail_dashboards.compute.excess import blame_lines, excess_bars
from kvtrail_dashboards.compute.figures import duration, percent
from kvtrail_dashboards.compute.names import Names
from kvtrail_dashboards.fetch import Explanation


def excess_section(explanation: Explanation, names: Names) -> None:
    """Nothing where there is no window to explain."""
    attribution = explanation.attribution
    if not attribution.components:
        return
    chart, beside = st.columns([6, 5], gap="medium")
    with chart:
        st.subheader("What the slow requests had more of", anchor=False)
        st.altair_chart(excess_chart(excess_bars(attribution)), width="stretch")
        _sums(explanation)
    with beside:
        _blame(explanation, names)


def _sums(explanation: Explanation) -> None:
    """The totals that the bars belong to."""
    attribution = explanation.attribution
    told = ["Bars: excess over the reference; lines: bootstrap intervals"]
    if attribution.excess_tail_ms is not None:
        told.append(f"tail mean: {duration(attribution.excess_tail_ms)} more")
    if attribution.excess_quantile_ms is not None and attribution.quantile is not None:
        told.append(f"P{attribution.quantile * 100:g} itself: {duration(attribution.excess_quantile_ms)} more")
    if attribution.mix_ms:
        told.append(f"of it by another mix of requests: {duration(attribution.mix_ms)}")
    st.caption("; ".join(told) + ".")


def _blame(explanation: Explanation, names: Names) -> None:
    """Whose work was in service while the slow requests waited."""
    st.subheader("Whose work they waited behind", anchor=False)
    lines = blame_lines(explanation.attribution.blame, names)
    if not lines:
        st.caption("The slow requests waited in no queue of a tier.")
        return
    own = f"{explanation.engine}/"
    rows = [
        (line.queue.removeprefix(own), line.tenant, line.kind.replace("_", " "), line.waited_ms, percent(line.share))
        for line in lines
    ]
    frame = pd.DataFrame(rows, columns=["queue", "tenant", "kind", "waited, ms", "share"])
    # The share is what people look for: it must not be the column that a narrow window cuts.
    config = {
        "queue": st.column_config.TextColumn("rank/tier", width=80),
        "share": st.column_config.TextColumn(width=60),
        "waited, ms": st.column_config.NumberColumn(format="%.1f", width=85),
    }
    st.dataframe(
        frame[["queue", "share", "waited, ms", "tenant", "kind"]], hide_index=True, width="stretch", column_config=config
    )
