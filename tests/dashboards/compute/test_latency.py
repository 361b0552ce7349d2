"""TTFT over time: bounded, broken where nothing arrived, placed in wall time."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_dashboards.answers import Series, SeriesRow, Window
from kvtrail_dashboards.compute.latency import MAX_POINTS, bucket_ms_for, latency_view
from kvtrail_dashboards.compute.wall import wall_time

from tests.dashboards.answers import SECOND_NS, WALL_OFFSET_NS, series


def made(**changes: int) -> Series:
    """A series in its type."""
    return msgspec.convert(series(**changes), Series)


@given(st.integers(0, 20_000_000))
def test_the_chart_has_a_bounded_number_of_points(span_s: int) -> None:
    """From a second to a year, the buckets are chosen so that at most `MAX_POINTS` are drawn, up to 150 days."""
    coarse = Series(60_000, (SeriesRow(0, 0, 1), SeriesRow(span_s * SECOND_NS, 0, 1)))
    bucket_s = bucket_ms_for(coarse) / 1_000

    assert span_s / bucket_s <= MAX_POINTS or bucket_s == 86_400


def test_a_short_run_is_shown_by_the_second() -> None:
    """Nothing yet, or two minutes: the narrowest bucket."""
    assert bucket_ms_for(Series(60_000)) == 1_000
    assert bucket_ms_for(Series(60_000, (SeriesRow(0, 0, 1), SeriesRow(60 * SECOND_NS, 0, 1)))) == 1_000


def test_lines_break_where_nothing_arrived() -> None:
    """A hole in the buckets is an empty point, not a line drawn across."""
    whole = made(seconds=10)
    holed = msgspec.structs.replace(whole, series=whole.series[:3] + whole.series[6:])
    points = latency_view(holed, None, None).points

    assert [point.p99_ms for point in points] == [35.0, 35.0, 35.0, None, 35.0, 35.0, 35.0, 35.0]


def test_points_and_marks_stand_in_wall_time() -> None:
    """The spike is marked where its arrivals are drawn."""
    view = latency_view(made(), Window(40 * SECOND_NS, 60 * SECOND_NS), Window(10 * SECOND_NS, 40 * SECOND_NS))

    assert [band.name for band in view.bands] == ["reference", "spike"]
    assert datetime.fromtimestamp(1_700_000_040, UTC) == view.bands[1].start
    assert (len(view.points), view.requests) == (100, 3_500)


@given(st.integers(0, 2**62))
def test_wall_time_and_back_keeps_the_microsecond(monotonic_ns: int) -> None:
    """A stretch chosen on the chart is the stretch that is asked for, to the microsecond."""
    wall = wall_time(made())
    back = wall.monotonic_ns(wall.at(monotonic_ns))

    assert abs(back - monotonic_ns) < 1_000


def test_a_window_is_told_with_its_day_and_length() -> None:
    """UTC, and once the day."""
    told = wall_time(made()).span(Window(40 * SECOND_NS, 60 * SECOND_NS))

    assert wall_time(made()).offset_ns == WALL_OFFSET_NS
    assert told == "2023-11-14 22:14:00 to 22:14:20 UTC (20.0 s)"
