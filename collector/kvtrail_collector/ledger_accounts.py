"""The ledgers of some stored requests as rows, one a request: computed from events, kept in a table, read back as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kvtrail_collector.facts_build import Recording, recording_of_table
from kvtrail_collector.facts_rows import NO_ID, IdArray, IntArray, Interval
from kvtrail_collector.ledger_columns import Ledgers, ledgers_of
from kvtrail_collector.ledger_rows import identity_of, rows_for
from kvtrail_collector.ledger_thin import thinned
from kvtrail_collector.questions.rows import StreamRow

SCHEMA: Final = pa.schema(
    [
        pa.field("stream_id", pa.int32()),
        pa.field("req", pa.uint64()),
        pa.field("ns", pa.uint64()),
        pa.field("prompt_tokens", pa.uint32()),
        pa.field("arrived_ns", pa.int64()),
        pa.field("end_ns", pa.int64()),
        pa.field("end_kind", pa.uint8()),
        pa.field("labels", pa.list_(pa.uint32())),
        pa.field("parts_ns", pa.list_(pa.int64())),
        pa.field("hidden_ns", pa.list_(pa.int64())),
    ]
)
"""The rows of `request_ledgers`."""


def account(
    cursor: duckdb.DuckDBPyConnection, stream: StreamRow, wanted: IdArray, span: Interval, holes: list[Interval]
) -> pa.Table:
    """The ledgers of some requests of a stream, all of whom lived within a span; those without an arrival are left out.

    Runs on a worker thread: one look at the events around the span, then 10 to 20 µs a request.
    """
    table = thinned(rows_for(cursor, stream, wanted, span))
    recording = recording_of_table(table, {identity_of(stream): holes}, now_ns=span[1])
    return ledger_rows(recording, stream.stream_id, np.isin(recording.columns.requests.req, wanted))


def ledger_rows(recording: Recording, stream_id: int, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """The ledgers of some requests of a recording as rows of the table, by request."""
    requests, ledgers = recording.columns.requests, ledgers_of(recording.columns)
    places = np.flatnonzero(chosen)
    places = places[np.argsort(requests.req[places])]
    columns = [
        pa.array(np.full(len(places), stream_id, dtype=np.int32)),
        pa.array(requests.req[places]),
        pa.array(requests.ns[places], mask=requests.ns[places] == NO_ID),
        pa.array(np.maximum(requests.tokens[places], 0).astype(np.uint32), mask=requests.tokens[places] < 0),
        pa.array(requests.arrived_ns[places]),
        pa.array(requests.end_ns[places]),
        pa.array(requests.end[places].astype(np.uint8)),
        *_lists(ledgers, places),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _lists(ledgers: Ledgers, places: IntArray) -> list[pa.Array[Any]]:
    """Labels, shown and hidden amounts of some requests; a label that has neither is left out."""
    codes = np.union1d(ledgers.parts.codes, ledgers.hidden.codes)
    shown, hidden = (np.zeros((len(places), len(codes)), dtype=np.int64) for _ in range(2))
    shown[:, np.searchsorted(codes, ledgers.parts.codes)] = ledgers.parts.ns[places]
    hidden[:, np.searchsorted(codes, ledgers.hidden.codes)] = ledgers.hidden.ns[places]
    row, column = np.nonzero(shown + hidden)
    offsets = pa.array(np.searchsorted(row, np.arange(len(places) + 1)).astype(np.int32), pa.int32())
    values: list[pa.Array[Any]] = [pa.array(codes[column].astype(np.uint32), pa.uint32())]
    values += [pa.array(each[row, column], pa.int64()) for each in (shown, hidden)]
    return [pa.ListArray.from_arrays(offsets, each) for each in values]


@dataclass(frozen=True, slots=True)
class Accounts:
    """Rows of ledgers as columns, in the order of arrival. An amount is of request i where `request` is i, in no order."""

    stream: IntArray
    req: IdArray
    ns: IdArray
    prompt_tokens: IntArray
    arrived_ns: IntArray
    end_ns: IntArray
    end: IntArray
    request: IntArray
    codes: IntArray
    parts_ns: IntArray

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The rows of a table as it is stored, what is hidden left out. Half a microsecond a request."""
        order = _by_arrival(table)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        counts = pc.list_value_length(table["labels"]).to_numpy()
        return cls(
            stream=_ints(table["stream_id"])[order],
            req=table["req"].to_numpy().astype(np.uint64)[order],
            ns=_filled(table["ns"], pa.scalar(int(NO_ID), pa.uint64())).to_numpy().astype(np.uint64)[order],
            prompt_tokens=_ints(_filled(table["prompt_tokens"].cast(pa.int64()), pa.scalar(-1, pa.int64())))[order],
            arrived_ns=_ints(table["arrived_ns"])[order],
            end_ns=_ints(table["end_ns"])[order],
            end=_ints(table["end_kind"])[order],
            request=np.repeat(place, counts),
            codes=_flat(table["labels"]),
            parts_ns=_flat(table["parts_ns"]),
        )


def _by_arrival(table: pa.Table) -> IntArray:
    """The places of rows in the order of arrival, then of request, then of stream: by time alone, where that says all."""
    arrived_ns = table["arrived_ns"].to_numpy()
    order = np.argsort(arrived_ns, kind="stable")
    if np.all(arrived_ns[order[1:]] != arrived_ns[order[:-1]]):
        return np.asarray(order, dtype=np.int64)
    return np.lexsort([table[name].to_numpy() for name in ("stream_id", "req", "arrived_ns")])


def _flat(column: pa.ChunkedArray[Any]) -> IntArray:
    """The values of a column of lists, one list after the other."""
    return _ints(pc.list_flatten(column))


def _filled(column: pa.ChunkedArray[Any], value: pa.Scalar[Any]) -> pa.ChunkedArray[Any]:
    """A column with a value where it has none."""
    filled: Any = pc.fill_null(column, value)
    return pa.chunked_array([filled] if isinstance(filled, pa.Array) else filled.chunks, column.type)


def _ints(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> IntArray:
    """A column of numbers."""
    return np.asarray(column, dtype=np.int64)
