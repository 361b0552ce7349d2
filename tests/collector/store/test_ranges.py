"""Promises of the sets of seqs, held against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.store.ranges import RangeSet, SeqRange, holes, merged, positions_of_new, runs

PARTS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda pair: SeqRange(pair[0], pair[0] + pair[1])), max_size=12
)


def members(ranges: RangeSet) -> set[int]:
    """A range set as a plain set."""
    return {number for first, last in ranges for number in range(first, last + 1)}


@given(PARTS, PARTS)
def test_they_are_sets(some: list[SeqRange], others: list[SeqRange]) -> None:
    """Union, difference, intersection and size are those of sets, in whatever order ranges come."""
    left, right = merged(some), merged(others)

    assert members(left) | members(right) == members(left.add(others))
    assert members(left) - members(right) == members(left.subtract(right))
    assert members(left) & members(right) == members(left.intersect(right))
    assert len(members(left)) == left.size
    assert max(members(left), default=0) == left.highest


@given(PARTS)
def test_they_have_one_normal_form(some: list[SeqRange]) -> None:
    """Equal sets are equal values: ranges are sorted, disjoint and never touch."""
    whole = merged(some)

    assert merged(SeqRange(number, number) for number in members(whole)) == whole
    assert all(before.last + 1 < after.first for before, after in zip(whole.ranges, whole.ranges[1:], strict=False))


@given(PARTS, st.integers(0, 80))
def test_holes_are_what_is_not_there(some: list[SeqRange], highest: int) -> None:
    """The holes up to a number are exactly the numbers that are missing."""
    whole = merged(some)

    assert set(range(1, highest + 1)) - members(whole) == members(holes(whole, highest))


@given(st.sets(st.integers(1, 90)), PARTS)
def test_new_rows_are_those_not_stored(numbers: set[int], some: list[SeqRange]) -> None:
    """Of ascending seqs the mask keeps those that are not in the set, and runs put them back together."""
    array = np.array(sorted(numbers), dtype=np.uint64)
    stored = merged(some)
    new = array[positions_of_new(array, stored)]

    assert numbers - members(stored) == set(new.tolist())
    assert numbers == members(RangeSet(tuple(runs(array))))


def test_the_largest_seqs_fit() -> None:
    """Seqs at the upper end of 64 bits neither overflow nor lose precision."""
    top = 2**64 - 2
    array = np.array([top - 2, top - 1, top], dtype=np.uint64)

    assert [SeqRange(top - 2, top)] == runs(array)
    assert positions_of_new(array, merged([SeqRange(top - 1, top - 1)])).tolist() == [True, False, True]
