"""Events as columns: from a table of the store, or from event structs, to arrays sorted by stream and seq.

This is the one door through which facts come in, and what a drill injected stops here: `fault_*` rows are dropped
before anything else looks at the rows, so nothing behind this module can read them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.kinds import Kind, kind_of
from numpy.typing import NDArray

IdArray = NDArray[np.uint64]
IntArray = NDArray[np.int64]
Interval = tuple[int, int]
BoolArray = NDArray[np.bool_]

NO_ID: Final = np.uint64(2**64 - 1)
NO_INT: Final = -1
_ID_COLUMNS: Final = ("ns", "req", "op", "prefetch", "step", "id", "cause", "block")
_INT_COLUMNS: Final = (
    *("tier", "src", "dst", "slot", "queue", "reason", "bytes", "tokens", "prefill_tokens"),
    *("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns", "wait_ns", "duration_ns", "recompute_estimate_ns"),
)
_HIDDEN_KINDS: Final = np.array([Kind.FAULT_INJECTED, Kind.FAULT_CLEARED], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns that facts are built from, sorted by (stream, seq), each row once.

    Absent ids are `NO_ID`, absent numbers `NO_INT`. `stream` is an index into `streams`. `holes` has, for each stream,
    the intervals of time in which rows are missing from its seq.
    """

    streams: tuple[Stream, ...]
    holes: tuple[tuple[Interval, ...], ...]
    stream: IntArray
    seq: IdArray
    t_ns: IntArray
    kind: IntArray
    ids: dict[str, IdArray]
    ints: dict[str, IntArray]
    text: NDArray[np.object_]

    def of_kinds(self, *kinds: Kind) -> IntArray:
        """The places of all rows of these kinds, in order."""
        return np.flatnonzero(np.isin(self.kind, np.array(kinds, dtype=np.int64)))


def rows_of_table(table: pa.Table, holes: Mapping[Stream, Sequence[Interval]] | None = None) -> Rows:
    """Rows of a table with the pinned columns and `engine`, `epoch`, `rank`; columns that it lacks are absent throughout.

    About 50 ns a row and column. To see holes it needs the rows of all kinds; for a table that is only a selection, `holes`
    says what the store knows.
    """
    streams, stream = _streams_of_table(table)
    return _rows(
        streams,
        stream,
        {name: ids_of(table, name) for name in ("seq", *_ID_COLUMNS)},
        {name: ints_of(table, name) for name in ("t_ns", "kind", *_INT_COLUMNS)},
        _texts(table),
        holes,
    )


def rows_of_selection(table: pa.Table, stream: IntArray, holes: Mapping[Stream, Sequence[Interval]]) -> Rows:
    """As `rows_of_table`, for a selection of the rows of some streams, all those that `holes` names, in their order.

    `stream` is the place of each row's stream among them.
    """
    ids = {name: ids_of(table, name) for name in ("seq", *_ID_COLUMNS)}
    ints = {name: ints_of(table, name) for name in ("t_ns", "kind", *_INT_COLUMNS)}
    return _rows(tuple(holes), stream, ids, ints, _texts(table), holes)


def rows_of_events(events: Iterable[Event], stream: Stream | None = None) -> Rows:
    """Rows of event structs of one stream."""
    known = list(events)
    home = stream or Stream("engine", Epoch(1), Rank(0))
    ids = {name: _gather_ids(known, name) for name in ("seq", *_ID_COLUMNS)}
    ints = {name: _gather_ints(known, name) for name in ("t_ns", *_INT_COLUMNS)}
    ints["kind"] = np.array([kind_of(event) for event in known], dtype=np.int64)
    texts = np.array([getattr(event, "text", None) for event in known], dtype=np.object_)
    return _rows((home,), np.zeros(len(known), dtype=np.int64), ids, ints, texts)


def _rows(  # noqa: PLR0917 - the columns of a table, in their order
    streams: tuple[Stream, ...],
    stream: IntArray,
    ids: dict[str, IdArray],
    ints: dict[str, IntArray],
    text: NDArray[np.object_],
    holes: Mapping[Stream, Sequence[Interval]] | None = None,
) -> Rows:
    """Rows in order, each once, without those of drills."""
    order = np.lexsort((ids["seq"], stream))
    seq, home, t_ns = ids["seq"][order], stream[order], ints["t_ns"][order]
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (seq[1:] == seq[:-1]) & (home[1:] == home[:-1])
    shown = ~np.isin(ints["kind"][order], _HIDDEN_KINDS)
    if holes is None:
        own = [home == index for index in range(len(streams))]
        found = tuple(_holes(seq[here], t_ns[here], shown[here]) for here in own)
    else:
        found = tuple(tuple(sorted(holes.get(known, ()))) for known in streams)
    kept = order[~again & shown]
    return Rows(
        streams=streams,
        holes=found,
        stream=stream[kept],
        seq=ids["seq"][kept],
        t_ns=ints["t_ns"][kept],
        kind=ints["kind"][kept],
        ids={name: _chosen(ids[name], kept) for name in _ID_COLUMNS},
        ints={name: _chosen(ints[name], kept) for name in _INT_COLUMNS},
        text=text[kept],
    )


def _chosen(column: NDArray[Any], kept: IntArray) -> NDArray[Any]:
    """Some of a column; one that is absent throughout stays one number."""
    return column[kept] if column.strides[0] or not len(column) else np.broadcast_to(column[0], len(kept))


def _holes(seq: IdArray, t_ns: IntArray, shown: BoolArray) -> tuple[Interval, ...]:
    """The intervals of time in which rows are missing: between the nearest rows on both sides of a gap in seq.

    Rows of drills fill their place in seq, but their times bound nothing.
    """
    places, known = np.flatnonzero(np.diff(seq) > 1), np.flatnonzero(shown)
    if not len(places) or not len(known):
        return ()
    after = np.minimum(np.searchsorted(known, places, side="right"), len(known) - 1)
    before = np.maximum(np.searchsorted(known, places, side="right") - 1, 0)
    first, last = t_ns[known[before]], t_ns[known[after]]
    return tuple(merged(zip(np.minimum(first, last).tolist(), np.maximum(first, last).tolist(), strict=True)))


def merged(spans: Iterable[Interval]) -> list[Interval]:
    """The union of intervals, as disjoint intervals in order of time."""
    union: list[Interval] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        elif end > start:
            union.append((start, end))
    return union


def _streams_of_table(table: pa.Table) -> tuple[tuple[Stream, ...], IntArray]:
    """The streams of a table, sorted, and for each row the index of its stream. By hashing: a sort of rows would cost most."""
    if not table.num_rows:
        return (), np.zeros(0, dtype=np.int64)
    columns = (table["engine"].cast(pa.string()), table["epoch"], table["rank"])
    (engines, engine), (epochs, epoch), (ranks, rank) = (_hashed(column) for column in columns)
    mixed = (engine * len(epochs) + epoch) * len(ranks) + rank
    found, codes = _hashed(pa.chunked_array([pa.array(mixed)]))
    streams = []
    for code in found:
        rest, rank_code = divmod(int(str(code)), len(ranks))
        name, epoch_code = divmod(rest, len(epochs))
        streams.append(Stream(str(engines[name]), Epoch(int(str(epochs[epoch_code]))), Rank(int(str(ranks[rank_code])))))
    order = sorted(range(len(streams)), key=lambda place: streams[place])
    place_of = np.argsort(np.array(order, dtype=np.int64))
    return tuple(streams[place] for place in order), place_of[codes]


def _hashed(column: "pa.ChunkedArray[Any]") -> tuple[list[object], IntArray]:
    """The distinct values of a column, and for each row the index of its value."""
    flat = column.combine_chunks()
    values = pc.unique(flat)
    return values.to_pylist(), pc.index_in(flat, values).to_numpy(zero_copy_only=False).astype(np.int64)


def ids_of(table: pa.Table, name: str) -> IdArray:
    """A column of ids; absent ones are `NO_ID`. One that is absent throughout is one number for all: not to be written to."""
    return _column(table, name, NO_ID, np.uint64)


def ints_of(table: pa.Table, name: str) -> IntArray:
    """A column of numbers; absent ones are `NO_INT`. Otherwise as `ids_of`."""
    return _column(table, name, NO_INT, np.int64)


def _column(table: pa.Table, name: str, absent: Any, dtype: Any) -> NDArray[Any]:
    """A column as an array, with absent values filled in before the width is lost to floats."""
    if name not in table.column_names or table.column(name).null_count == table.num_rows:
        return np.broadcast_to(np.asarray(absent, dtype=dtype), table.num_rows)
    column = table.column(name)
    if not column.null_count:
        return column.to_numpy().astype(dtype)
    present = ~column.is_null().to_numpy()
    filled = column.fill_null(pa.scalar(0, type=column.type)).to_numpy().astype(dtype)
    return np.where(present, filled, np.asarray(absent, dtype=dtype))


def _texts(table: pa.Table) -> NDArray[np.object_]:
    """The column of texts."""
    texts = np.full(table.num_rows, None, dtype=np.object_)
    if "text" in table.column_names:
        column = table.column("text").combine_chunks()
        there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        texts[there] = column.drop_null().to_pylist()
    return texts


def _gather_ids(events: list[Event], name: str) -> IdArray:
    """A field of ids from event structs."""
    values = (getattr(event, name, None) for event in events)
    return np.array([NO_ID if value is None else value for value in values], dtype=np.uint64)


def _gather_ints(events: list[Event], name: str) -> IntArray:
    """A field of numbers from event structs."""
    values = (getattr(event, name, None) for event in events)
    return np.array([NO_INT if value is None else value for value in values], dtype=np.int64)
