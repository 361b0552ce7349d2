"""Charts: units on every axis, one colour a family, nothing drawn from nothing. They are looked at in the browser test."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from kvtrail_dashboards.answers import Attribution, Series, Why
from kvtrail_dashboards.charts.excess import excess_chart
from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.charts.lines import MOST_LINES, LinePoint, lines_chart
from kvtrail_dashboards.charts.palette import COLOURS, Chart
from kvtrail_dashboards.charts.spans import spans_chart
from kvtrail_dashboards.charts.stacks import Slice, TimeSlice, stacked_bars, stacked_time
from kvtrail_dashboards.charts.timeline import hidden_chart, waterfall_chart
from kvtrail_dashboards.compute.block import CopySpan
from kvtrail_dashboards.compute.excess import excess_bars
from kvtrail_dashboards.compute.families import Family
from kvtrail_dashboards.compute.latency import latency_view
from kvtrail_dashboards.compute.timeline import timeline_of

from tests.dashboards import answers
from tests.dashboards.answers import Json

ATTRIBUTION = msgspec.convert(answers.attribution(), Attribution)
SERIES = msgspec.convert(answers.series(), Series)
COLOUR = {"used": "#009E73"}
Times = tuple[datetime, datetime]
DAY: Times = (datetime(2026, 1, 31, 4, tzinfo=UTC), datetime(2026, 1, 31, 6, tzinfo=UTC))
NIGHT: Times = (datetime(2026, 1, 30, 23, 50, tzinfo=UTC), datetime(2026, 1, 31, 0, 10, tzinfo=UTC))
DAYS: Times = (datetime(2026, 1, 25, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC))
TIMELINE = timeline_of(msgspec.convert(answers.why(), Why))


def layers(chart: Chart) -> list[Json]:
    """The layers of a chart as Vega-Lite gets them."""
    spec: Json = chart.to_dict()
    drawn: list[Json] = spec.get("layer", [spec])
    return drawn


def titles(chart: Chart) -> set[str]:
    """The titles of a chart's measured axes."""
    axes = [layer["encoding"].get(axis, {}) for layer in layers(chart) for axis in ("x", "y")]
    return {axis["title"] for axis in axes if axis.get("title")}


def time_format(chart: Chart) -> str:
    """How the labels of a chart's axis of time are told."""
    form: str = layers(chart)[0]["encoding"]["x"]["axis"]["format"]
    return form


def colours(chart: Chart) -> dict[str, str]:
    """Which colour stands for which family on a chart."""
    scales = [layer["encoding"]["color"]["scale"] for layer in layers(chart) if "scale" in layer["encoding"].get("color", {})]
    return {name: colour for scale in scales for name, colour in zip(scale["domain"], scale["range"], strict=True)}


def test_every_measured_axis_names_its_unit() -> None:
    """No reader has to guess."""
    latency = latency_chart(latency_view(SERIES, ATTRIBUTION.window, ATTRIBUTION.reference))

    assert titles(latency) == {"time of arrival, UTC, 2023-11-14", "time to first token, ms"}
    assert titles(excess_chart(excess_bars(ATTRIBUTION))) == {"excess in the mean of the tail, ms"}
    assert titles(hidden_chart(TIMELINE.hidden)) == {"ms of work that overlapped others"}


@pytest.mark.parametrize(
    ("drawn", "unit"),
    [
        (lambda at: lines_chart([LinePoint(one, "gpu", 1.0) for one in at], "used, % of the tier"), "used, % of the tier"),
        (lambda at: stacked_time([TimeSlice(at[0], at[1], "used", 5)], COLOUR, "blocks issued"), "blocks issued"),
        (lambda at: spans_chart([CopySpan("gpu", at[0], at[1], "still there")]), None),
    ],
)
def test_an_axis_of_time_says_which_day_and_that_it_is_utc(drawn: Callable[[Times], Chart], unit: str | None) -> None:
    """A picture of a chart, seen a week later, says of which night it is; the other axis has its unit."""
    one_day, over_midnight, days = (titles(drawn(times)) for times in (DAY, NIGHT, DAYS))

    assert {"UTC, 2026-01-31", unit} - {None} == one_day
    assert {"UTC", unit} - {None} == over_midnight == days
    assert ["%H:%M:%S", "%m-%d %H:%M:%S", "%m-%d %H:%M"] == [time_format(drawn(times)) for times in (DAY, NIGHT, DAYS)]


def test_a_bar_that_is_cut_into_parts_names_its_unit() -> None:
    """Rows have names, and amounts a unit."""
    assert titles(stacked_bars([Slice("gpu", "used", 60, "6 GiB")], COLOUR, "% of the tier")) == {"% of the tier"}


def test_each_of_many_ranks_has_a_line_of_its_own() -> None:
    """The seventh and the eighth rank are drawn, and no two lines look alike."""
    points = [LinePoint(DAY[0], f"rank {rank}", 1.0) for rank in range(MOST_LINES + 4)]
    encoding = layers(lines_chart(points, "events a second"))[0]["encoding"]
    looks = zip(encoding["color"]["scale"]["range"], encoding["strokeDash"]["scale"]["range"], strict=True)

    assert [f"rank {rank}" for rank in range(MOST_LINES)] == encoding["color"]["scale"]["domain"]
    assert MOST_LINES == len({(colour, tuple(dash)) for colour, dash in looks})


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
    expected = "ms since arrival; parts stand in the order of the ledger, one after the other"

    assert titles(waterfall_chart(TIMELINE.waterfall)) == {expected}


def test_what_ended_differently_in_one_bucket_stands_on_top_of_each_other() -> None:
    """The height of a bucket is all that was issued in it; parts stand in the order of the colours."""
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    slices = [TimeSlice(start, end, "wasted", 3), TimeSlice(start, end, "used", 5)]
    chart = stacked_time(slices, {"used": "#009E73", "wasted": "#D55E00"}, "blocks")
    (rows,) = chart.to_dict()["datasets"].values()

    assert [(row["part"], row["low"], row["high"]) for row in rows] == [("used", 0, 5), ("wasted", 5, 8)]
