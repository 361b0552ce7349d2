"""Bodies of version 2, which nothing writes any more: their columns are read, and columns that make no sense are refused."""

from typing import Any

import pyarrow as pa
import pytest
from kvtrail_schema.batch import decode_batch
from kvtrail_schema.compact import SEQ_STEPS
from kvtrail_schema.errors import BodyInvalid

from tests.schema.frames import forged, header_of, stream_of


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
