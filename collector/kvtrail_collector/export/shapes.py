"""What a timeline is made of, whatever tool draws it; loads no database."""

from typing import NamedTuple

from kvtrail_collector.errors import NotFound


def nothing_there() -> NotFound:
    """The error of an export of nothing."""
    return NotFound("no event lies in it", where="window", do="ask for a longer one; /v1/engines has when each was heard")


class Slice(NamedTuple):
    """Something that lasted from `start_ns` to `end_ns` on a track; slices of one track may overlap."""

    track: str
    name: str
    start_ns: int
    end_ns: int
    notes: dict[str, int | str]


class Sample(NamedTuple):
    """The value of a counter from a moment on."""

    counter: str
    unit: str
    at_ns: int
    value: int


class Process(NamedTuple):
    """One rank of an engine, with what happened in it. `wall_offset_ns` turns its clock into wall time."""

    engine: str
    rank: int
    wall_offset_ns: int
    slices: list[Slice]
    samples: list[Sample]
