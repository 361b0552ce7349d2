"""Buckets of a series of which some are left out: where a line has to break."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Bucket(Protocol):
    """**Protocol:** one bucket of a series; where it begins on the engine's clock."""

    @property
    def start_ns(self) -> int:
        """Its first nanosecond."""
        ...


Row = TypeVar("Row", bound=Bucket)


def with_breaks(rows: Iterable[Row], width_ns: int) -> Iterator[tuple[Row, bool]]:
    """The buckets in the order of time, and for each whether some are missing before it."""
    expected: int | None = None
    for row in sorted(rows, key=lambda row: row.start_ns):
        yield row, expected is not None and row.start_ns > expected
        expected = row.start_ns + width_ns
