"""The rows of one stream as columns of NumPy, in the order of seq; each is converted when it is first asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from kvtrail_schema.kinds import Kind

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

NO_ID: Final = np.uint64(2**64 - 1)
"""What stands in a column of ids for "absent": larger than any id."""
ABSENT: Final = -1
"""What stands in a column of whole numbers for "absent"."""
_MOST: Final = np.uint64(2**60)
"""Larger figures cannot be true, and count as absent, as in every scene."""

NEEDED: Final = (
    *("stream_id", "seq", "kind", "t_ns", "text", "value", "tier", "src", "dst", "block", "ns", "req", "op", "slot", "refs"),
    *("reason", "tokens", "tokens_gpu", "tokens_host", "tokens_nvme", "tokens_remote", "prefill_tokens", "decode_tokens"),
    *("capacity_bytes", "used_bytes", "first_seq", "last_seq", "count", "extra"),
)
"""The columns that checkers ask for; the others are not carried along."""


class Rows:
    """Rows of one stream. Costs what is asked of it: a column without nulls next to nothing, any other one copy."""

    def __init__(self, table: pa.Table) -> None:
        seqs = table["seq"].to_numpy()
        self._table = table if bool(np.all(seqs[1:] > seqs[:-1])) else table.sort_by("seq")
        self._known: dict[str, Ints] = {}
        self._ids: dict[str, Ids] = {}
        self.kind: Final = self._table["kind"].to_numpy()
        self._by_kind: Ints = np.argsort(self.kind, kind="stable")  # of 16 bits: a radix sort, a few ns a row
        self._sorted_kinds = self.kind[self._by_kind]
        self.seq: Final = self.numbers("seq")
        self.t_ns: Final = self.numbers("t_ns")

    def __len__(self) -> int:
        """How many rows there are."""
        return self._table.num_rows

    def after(self, seq: int) -> Rows:
        """Those of larger seqs."""
        return Rows(self._table.slice(int(np.searchsorted(self.seq, seq, side="right"))))

    def of(self, *kinds: Kind) -> Ints:
        """The places of rows of some kinds."""
        parts = [self._by_kind[slice(*np.searchsorted(self._sorted_kinds, (kind, kind + 1)))] for kind in kinds]
        there = [part for part in parts if len(part)]
        if len(there) == 1:
            return there[0]
        return np.sort(np.concatenate(there)) if there else self._by_kind[:0]

    def other_than(self, *kinds: Kind) -> Ints:
        """The places of rows of all other kinds."""
        return np.flatnonzero(~_chosen(kinds)[self.kind])

    def are(self, places: Ints, *kinds: Kind) -> Bools:
        """Whether rows are of some kinds."""
        return np.asarray(_chosen(kinds)[self.kind[places]])

    def numbers(self, name: str) -> Ints:
        """A column of whole numbers; what is absent, or too large to be true, is `ABSENT`."""
        if name not in self._known:
            self._known[name] = _whole(self._table[name])
        return self._known[name]

    def numbers_at(self, name: str, places: Ints) -> Ints:
        """A column of whole numbers at few places."""
        return self._known[name][places] if name in self._known else _whole(self._table[name].take(places))

    def ids(self, name: str) -> Ids:
        """A column of ids; what is absent is `NO_ID`."""
        if name not in self._ids:
            column = self._table[name].combine_chunks()
            whole = column.fill_null(0) if column.null_count else column
            values = whole.to_numpy(zero_copy_only=False).astype(np.uint64, copy=False)
            if column.null_count:
                values = np.where(column.is_valid().to_numpy(zero_copy_only=False), values, NO_ID)
            self._ids[name] = values
        return self._ids[name]

    def floats_at(self, name: str, places: Ints) -> npt.NDArray[np.float64]:
        """A column of floats at few places; absent is not a number."""
        return np.asarray(self._table[name].take(places).cast(pa.float64()).to_numpy(), dtype=np.float64)

    def present(self, name: str) -> Ints:
        """The places of rows that have a value here."""
        column = self._table[name]
        if column.null_count == len(column):
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(column.is_valid().to_numpy())

    def text(self, place: int) -> str:
        """The text of a row."""
        return self._table["text"][place].as_py() or ""

    def landing_tier(self, places: Ints) -> Ints:
        """Where the copy of each row lies: its destination, or its tier where it has none."""
        to = self.numbers("dst")[places]
        return np.where(to != ABSENT, to, self.numbers("tier")[places])


def _whole(chunked: pa.ChunkedArray[Any]) -> Ints:
    """A column as whole numbers."""
    column = chunked.combine_chunks()
    values = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    whole = np.asarray(values, dtype=np.int64)
    if values.dtype == np.uint64 and len(values) and values.max() > _MOST:
        whole = np.where(values > _MOST, ABSENT, whole)
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), whole, ABSENT) if column.null_count else whole


@lru_cache(maxsize=64)
def _chosen(kinds: tuple[Kind, ...]) -> Bools:
    """For each number of a kind whether it is one of these."""
    chosen = np.zeros(1 << 16, dtype=np.bool_)
    chosen[[kind.value for kind in kinds]] = True
    return chosen


def key_of(*columns: Ids | Ints) -> Ids:
    """One number that stands for several, never 0: equal for equal ones, and for others with no more chance than 1 in 2^64."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        key ^= column.astype(np.uint64, copy=False)
        key *= np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    return np.maximum(key, np.uint64(1))
