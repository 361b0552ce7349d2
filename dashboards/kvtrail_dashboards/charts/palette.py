"""Colours: one for each family of components, told apart with any colour vision, on dark and on light grounds."""

from typing import Final

import altair as alt

from kvtrail_dashboards.compute.families import Family

Chart = alt.Chart | alt.LayerChart | alt.FacetChart

# Paul Tol's "bright" scheme, made for colour-blind readers; names stand beside the bars, so colour is never alone.
COLOURS: Final[dict[Family, str]] = {
    Family.SCHEDULER: "#CCBB44",
    Family.LOOKUP: "#66CCEE",
    Family.QUEUE: "#AA3377",
    Family.READ: "#EE6677",
    Family.COPY: "#4477AA",
    Family.COMPUTE: "#228833",
    Family.UNATTRIBUTED: "#BBBBBB",
}
# Percentiles are no components: they have a hue of their own, and dashes.
PERCENTILE: Final = "#009988"
SPIKE: Final = "#CC3311"
NEUTRAL: Final = "#888888"
_ROW_PX: Final = 30
_AROUND_PX: Final = 125


def height_px(rows: int) -> int:
    """The height of a chart with so many rows, its axis and a legend of two lines."""
    return _ROW_PX * rows + _AROUND_PX


def family_colour(families: list[Family], *, legend: bool = True) -> alt.Color:
    """The encoding of colour by family; the legend names only the families that are drawn."""
    shown = [family for family in Family if family in families]
    scale = alt.Scale(domain=[family.value for family in shown], range=[COLOURS[family] for family in shown])
    key = alt.Legend(title=None, orient="bottom", columns=3) if legend else None
    return alt.Color("family:N", scale=scale, legend=key)
