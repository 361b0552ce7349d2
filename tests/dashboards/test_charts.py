"""Charts: units on every axis, one colour a family, nothing drawn from nothing. They are looked at in the browser test."""

from datetime import UTC, datetime

import msgspec
from kvtrail_dashboards.answers import Attribution, Series, Why
from kvtrail_dashboards.charts.excess import excess_chart
from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.charts.palette import COLOURS, Chart
from kvtrail_dashboards.charts.stacks import TimeSlice, stacked_time
from kvtrail_dashboards.charts.timeline import hidden_chart, waterfall_chart
from kvtrail_dashboards.compute.excess import excess_bars
from kvtrail_dashboards.compute.families import Family
from kvtrail_dashboards.compute.latency import latency_view
from kvtrail_dashboards.compute.timeline import timeline_of

from tests.dashboards import answers
from tests.dashboards.answers import Json

ATTRIBUTION = msgspec.convert(answers.attribution(), Attribution)
SERIES = msgspec.convert(answers.series(), Series)
TIMELINE = timeline_of(msgspec.convert(answers.why(), Why))


def layers(chart: Chart) -> list[Json]:
    """The layers of a chart as Vega-Lite gets them."""
    spec: Json = chart.to_dict()
    drawn: list[Json] = spec["layer"]
    return drawn


def titles(chart: Chart) -> set[str]:
    """The titles of a chart's measured axes."""
    axes = [layer["encoding"].get(axis, {}) for layer in layers(chart) for axis in ("x", "y")]
    return {axis["title"] for axis in axes if axis.get("title")}


def colours(chart: Chart) -> dict[str, str]:
    """Which colour stands for which family on a chart."""
    scales = [layer["encoding"]["color"]["scale"] for layer in layers(chart) if "scale" in layer["encoding"].get("color", {})]
    return {name: colour for scale in scales for name, colour in zip(scale["domain"], scale["range"], strict=True)}


def test_every_measured_axis_names_its_unit() -> None:
    """No reader has to guess."""
    latency = latency_chart(latency_view(SERIES, ATTRIBUTION.window, ATTRIBUTION.reference))
    charts = [excess_chart(excess_bars(ATTRIBUTION)), waterfall_chart(TIMELINE.waterfall), hidden_chart(TIMELINE.hidden)]

    assert titles(latency) == {"time of arrival, UTC", "time to first token, ms"}
    assert all("ms" in title.replace(",", "").split() for chart in charts for title in titles(chart))


def test_a_family_has_one_colour_on_every_chart() -> None:
    """Reading red on one chart is reading red on the next; only families that are drawn stand in the legend."""
    expected = {family.value: colour for family, colour in COLOURS.items()}
    excess, waterfall = colours(excess_chart(excess_bars(ATTRIBUTION))), colours(waterfall_chart(TIMELINE.waterfall))

    assert excess == {name: expected[name] for name in ("scheduler wait", "storage read")}
    assert waterfall == {name: expected[name] for name in ("tier queue", "storage read", "prefill and decode")}
    assert set(COLOURS) == set(Family)
    assert len(set(COLOURS.values())) == len(Family)


def test_without_a_spike_nothing_is_marked() -> None:
    """A chart without marks has its lines alone, and Vega nothing to warn of."""
    healthy = layers(latency_chart(latency_view(SERIES, None, None)))

    assert [layer["mark"]["type"] for layer in healthy] == ["line"]


def test_a_waterfall_says_in_what_order_its_parts_stand() -> None:
    """Parts have no place in time; nobody should read one into the chart."""
    assert all("order of the ledger" in title for title in titles(waterfall_chart(TIMELINE.waterfall)))


def test_what_ended_differently_in_one_bucket_stands_on_top_of_each_other() -> None:
    """The height of a bucket is all that was issued in it; parts stand in the order of the colours."""
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    slices = [TimeSlice(start, end, "wasted", 3), TimeSlice(start, end, "used", 5)]
    chart = stacked_time(slices, {"used": "#009E73", "wasted": "#D55E00"}, "blocks")
    (rows,) = chart.to_dict()["datasets"].values()

    assert [(row["part"], row["low"], row["high"]) for row in rows] == [("used", 0, 5), ("wasted", 5, 8)]
