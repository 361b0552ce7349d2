"""Columns made small come back as they were, and columns that make no sense are refused."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import decode_batch
from kvtrail_schema.compact import BACK, SEQ_STEPS, compact, expand
from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import BodyInvalid
from kvtrail_schema.events import BlockCreated, Event, StepStarted
from kvtrail_schema.identity import LARGEST_ID, BlockId, Slot, StepId

from tests.schema.frames import forged, header_of, stream_of
from tests.strategies import streams

FEW_IDS = st.sampled_from([0, 1, 2, 7, LARGEST_ID])


def plain(events: list[Event]) -> pa.Table:
    """Events as the columns that hold anything."""
    table = table_of(events)
    return table.select([name for name in table.column_names if table[name].null_count < table.num_rows])


def same(expected: pa.Table, found: pa.Table) -> bool:
    """Whether two tables say the same, whatever the order and the widths of their columns. Times are still differences."""
    names = [name for name in expected.column_names if name != "t_ns"]
    others = set(found.column_names) - set(expected.column_names)
    equal = all(expected[name].equals(found[name].cast(expected.schema.field(name).type)) for name in names)
    return equal and all(found[name].null_count == found.num_rows for name in others)


@given(events=streams(min_size=1, max_size=30))
def test_any_batch_comes_back(events: list[Event]) -> None:
    """Whatever the columns hold: making them small loses nothing."""
    table = plain(events)

    assert same(table, expand(compact(table)))


def created(number: int, block: int, parent: int | None) -> Event:
    """A block with its parent."""
    own = None if parent is None else BlockId(parent)
    return BlockCreated(seq=number + 1, t_ns=number, block=BlockId(block), tier=Tier.GPU, slot=Slot(number), parent=own)


@given(pairs=st.lists(st.tuples(FEW_IDS, st.none() | FEW_IDS), min_size=1, max_size=60))
def test_ids_that_come_again_point_to_the_same(pairs: list[tuple[int, int | None]]) -> None:
    """Few ids on many rows, as block and as parent, in long chains: each row has its own again, and each id travels once."""
    table = plain([created(number, block, parent) for number, (block, parent) in enumerate(pairs)])
    small = compact(table)
    travelling = sum(len(small[name].drop_null()) for name in ("block", "parent") if name in small.column_names)

    assert same(table, expand(small))
    assert travelling == len({number for pair in pairs for number in pair if number is not None})


def test_equal_rows_cost_little() -> None:
    """A batch of events of one kind is a fraction of what its rows would be."""
    table = plain([StepStarted(seq=number, t_ns=10 * number, step=StepId(number)) for number in range(1, 4097)])

    assert compact(table).nbytes < table.nbytes / 3


def small_table(**changes: Any) -> pa.Table:
    """A small body of three events, with some of its columns changed."""
    columns: dict[str, Any] = {
        SEQ_STEPS: pa.array([1, 1, 1], pa.uint8()),
        "t_ns": pa.array([5, 0, 0], pa.int8()),
        "kind": pa.array([38, 38, 38], pa.uint8()),
        "prefetch": pa.array([1, 1, 1], pa.uint8()),
        "block": pa.array([9, None, None], pa.uint64()),
        "block~": pa.array([0, 2, 4], pa.uint8()),
    }
    return pa.table({name: column for name, column in (columns | changes).items() if column is not None})


def test_a_small_body_is_read() -> None:
    """The form is what the module says, not what its encoder happens to write."""
    table = decode_batch(forged(header_of(1, 3), stream_of(small_table()))).table

    assert [9, 9, 9] == table["block"].to_pylist()
    assert [1, 2, 3] == table["seq"].to_pylist()


NONSENSE: dict[str, dict[str, Any]] = {
    "before the first cell": {"block~": pa.array([0, 2, 5], pa.uint8())},
    "forwards": {"block~": pa.array([0, -2, 2], pa.int8())},
    "to no id": {"block~": pa.array([0, 1, 2], pa.uint8())},
    "far away": {"block~": pa.array([0, 2, 2**63], pa.uint64())},
    "too few new ids": {"block~": pa.array([0, 0, 2], pa.uint8())},
    "too many new ids": {"block": pa.array([9, 8, None], pa.uint64())},
    "no new ids": {"block": None},
    "texts as ids": {"block": pa.array(["a", None, None])},
    "texts as distances": {"block~": pa.array(["0", "2", "2"])},
    "half numbers": {"block~": pa.array([0.0, 2.0, 2.0])},
    "seqs twice": {"seq": pa.array([1, 2, 3], pa.uint64())},
    "a step without a number": {SEQ_STEPS: pa.array([1, None, 1], pa.uint8())},
    "steps as texts": {SEQ_STEPS: pa.array(["1", "1", "1"])},
    "steps back": {SEQ_STEPS: pa.array([1, -1, 1], pa.int8())},
    "a row without a kind": {"kind": pa.array([38, None, 38], pa.uint8())},
    "no kinds": {"kind": None},
    "no times": {"t_ns": None},
}


@pytest.mark.parametrize("changes", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    """Columns that no encoder writes end in an error of the codec, never in rows that nobody sent."""
    with pytest.raises(BodyInvalid):
        decode_batch(forged(header_of(1, 3), stream_of(small_table(**changes))))


def test_names_of_small_columns_are_no_fields() -> None:
    """A field of a later version cannot be taken for one of them."""
    assert all("~" in name for name in (SEQ_STEPS, *BACK))
