"""Which streams have one clock: `t_ns` of two of them can be compared only then (DESIGN, "Rules that hold everywhere").

`t_ns` counts from the start of a host. So two streams of an engine have one clock where the time of day less `t_ns` is the same
for both. Of a file, or of an import that does not know the time of day, one epoch is one run: its ranks have one clock where
they began within a minute of each other, and epochs are never compared.
"""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.clock import Clocks
from kvtrail_schema.identity import Stream

SAME_NS: Final = 1_000_000_000
"""By how much the time of day less `t_ns` may differ between streams of one clock: readings are not exact, and are adjusted."""
BEGUN_NS: Final = 60_000_000_000
"""Within which ranks of one run begin, of which nothing else is known."""
HOSTS_NS: Final = 60_000_000_000
"""By how much the time of day may differ between hosts."""
MOST_NS: Final = 2**61
"""Larger readings cannot be true."""


def wall_offset_ns(clocks: Clocks) -> int | None:
    """What makes `t_ns` the time of day; None where the source does not know it."""
    is_known = 0 <= clocks.error_ns <= SAME_NS and 0 <= clocks.wall_ns <= MOST_NS and 0 <= clocks.monotonic_ns <= MOST_NS
    return clocks.wall_ns - clocks.monotonic_ns if is_known else None


def clocks_of(first_ns: Mapping[Stream, int], offset_ns: Mapping[Stream, int]) -> dict[Stream, int]:
    """A number for the clock of each stream, from when each began, and what makes its clock the time of day where it is known.

    As `CLOCKS` in `scene_tables.py` says it of what is stored. Streams of different engines never share one.
    """
    known = {stream: (stream.engine, -1, offset_ns[stream]) for stream in first_ns if stream in offset_ns}
    unknown = {stream: (stream.engine, stream.epoch, first) for stream, first in first_ns.items() if stream not in offset_ns}
    found: dict[Stream, int] = {}
    for places, apart_ns in ((known, SAME_NS), (unknown, BEGUN_NS)):
        before: tuple[str, int, int] | None = None
        for stream, place in sorted(places.items(), key=lambda pair: pair[1]):
            is_same = before is not None and place[:2] == before[:2] and place[2] - before[2] <= apart_ns
            found[stream] = found[next(reversed(found))] if is_same else len(found)
            before = place
    return found
