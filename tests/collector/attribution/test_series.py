"""TTFT over time."""

from kvtrail_collector.series import p99_series

from tests.collector.attribution.populations import MS, population


def test_series() -> None:
    """Each bucket has the percentiles of what arrived in it; an empty one says so."""
    points = p99_series(population([[10 * MS], [30 * MS], [50 * MS]], every_ns=1_500 * MS), bucket_ns=1_000 * MS)

    assert [point.requests for point in points] == [1, 1, 0, 1]
    assert [point.p99_ms for point in points] == [10.0, 30.0, None, 50.0]


def test_nothing() -> None:
    """Without requests there is no series."""
    assert p99_series(population([])) == []
