"""Lanes: nothing overlaps on one, and there are no more of them than overlap at once."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.export.lanes import lay
from kvtrail_collector.export.shapes import Slice

_SLICES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda pair: Slice("t", "n", pair[0], sum(pair), {})), max_size=30
)


@given(_SLICES)
def test_slices_of_one_lane_never_overlap(slices: list[Slice]) -> None:
    """What a lane holds follows each other; every slice is on one."""
    lanes: dict[int, list[Slice]] = {}
    for lane, piece in lay(slices):
        lanes.setdefault(lane, []).append(piece)

    assert sum(len(held) for held in lanes.values()) == len(slices)
    for held in lanes.values():
        assert all(before.end_ns <= after.start_ns for before, after in pairwise(held))


@given(_SLICES)
def test_there_are_no_more_lanes_than_slices_overlap_at_once(slices: list[Slice]) -> None:
    """A viewer is not filled with empty lines. A slice without length takes an instant."""
    spans = [(piece.start_ns, max(piece.end_ns, piece.start_ns + 1)) for piece in slices]
    most = max((sum(start <= at < end for start, end in spans) for at, _ in spans), default=0)

    assert len({lane for lane, _ in lay(slices)}) == most
