"""Writes one plan in one transaction: rows, seq ranges, drops, marks and projections, or nothing of them.

Runs on the writer's thread. Everything goes in as Arrow and is merged by SQL over sets, never row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import duckdb
import pyarrow as pa

from kvtrail_collector.projections import INCOMING, Projection
from kvtrail_collector.store.account import Account
from kvtrail_collector.store.foreign import map_duckdb_errors
from kvtrail_collector.store.late import NOTHING_LATE, find_late
from kvtrail_collector.store.plan import Plan
from kvtrail_collector.store.positions import write_positions
from kvtrail_collector.store.reach import Reach
from kvtrail_collector.store.sheet import Sheet
from kvtrail_collector.store.touched import touch

_I32, _I64, _U8, _U16, _U64 = pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint64()


def _schema(**types: pa.DataType) -> pa.Schema:
    """Columns of one stream's books, each with its pinned type."""
    return pa.schema([pa.field("stream_id", _I32), *(pa.field(name, kind) for name, kind in types.items())])


_STREAMS: Final = _schema(engine=pa.utf8(), epoch=_U64, rank=_U16)
_RANGES: Final = _schema(first_seq=_U64, last_seq=_U64)
_DROPS: Final = _schema(stage=_U8, reason=_U8, first_seq=_U64, last_seq=_U64, count=_U64)
_MARKS: Final = _schema(produced=_U64, state=_U8, heard_wall_ns=_I64, monotonic_ns=_I64, wall_ns=_I64, error_ns=_I64)

_ROWS: Final = "rows_in"
_ADD_STREAMS: Final = "INSERT INTO streams BY NAME SELECT * FROM streams_in"
_ADD_DROPS: Final = "INSERT INTO drop_ranges BY NAME SELECT * FROM drops_in"
_FORGET_DROPS: Final = "DELETE FROM drop_ranges WHERE stream_id IN (SELECT stream_id FROM drops_in)"
_FORGET_RANGES: Final = """
DELETE FROM seq_ranges AS old USING gone_in AS gone WHERE old.stream_id = gone.stream_id AND old.first_seq = gone.first_seq
"""
_SET_RANGES: Final = """
MERGE INTO seq_ranges AS old USING ranges_in AS new ON old.stream_id = new.stream_id AND old.first_seq = new.first_seq
WHEN MATCHED THEN UPDATE SET last_seq = new.last_seq
WHEN NOT MATCHED THEN INSERT BY NAME
"""
_SET_MARKS: Final = """
MERGE INTO stream_marks AS old USING marks_in AS new ON old.stream_id = new.stream_id
WHEN MATCHED THEN UPDATE SET produced = new.produced, state = new.state, heard_wall_ns = new.heard_wall_ns,
    monotonic_ns = new.monotonic_ns, wall_ns = new.wall_ns, error_ns = new.error_ns
WHEN NOT MATCHED THEN INSERT BY NAME
"""


def commit(
    connection: duckdb.DuckDBPyConnection, plan: Plan, projections: Sequence[Projection], *, where: str, reach: Reach
) -> None:
    """Write a plan. After it returns everything is on disk; after it raises nothing is.

    Raises:
        StoreError: a statement failed and the transaction was rolled back.
    """
    with reach.commit():
        late = find_late(plan.rows, reach) if plan.rows is not None else NOTHING_LATE
        with map_duckdb_errors(where), transaction(connection):
            write_books(connection, plan)
            write_positions(connection, plan.positions)
            if plan.rows is not None:
                _write_rows(connection, plan.rows, projections)
            late.touch(connection)
        reach.remember(late.notes)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All of a block, or nothing of it."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    """Undo, without hiding the first error: DuckDB has undone already where the commit itself failed."""
    try:
        connection.rollback()
    except duckdb.Error:
        return


def _write_rows(connection: duckdb.DuckDBPyConnection, rows: pa.Table, projections: Sequence[Projection]) -> None:
    """The events, what is computed from them, and the requests that they touch."""
    sheet = Sheet.of(rows)
    for table, part in sheet.events():
        _apply(connection, _ROWS, part, f"INSERT INTO {table} BY NAME FROM {_ROWS}")
    for projection in projections:
        _apply(connection, INCOMING, sheet.source(projection), projection.merge_from(INCOMING))
    _apply(connection, INCOMING, sheet.requests, touch(INCOMING))


def write_books(connection: duckdb.DuckDBPyConnection, plan: Plan) -> None:
    """The streams, what of them is stored, what was dropped, and their marks; only what changed."""
    accounts = list(plan.after.values())
    moved = [account for account in accounts if account.drops != _drops_before(plan, account)]
    gone, ranges = _range_changes(plan)
    _apply(connection, "streams_in", _streams(plan.opened()), _ADD_STREAMS)
    _apply(connection, "gone_in", gone, _FORGET_RANGES)
    _apply(connection, "ranges_in", ranges, _SET_RANGES)
    _apply(connection, "drops_in", _drops(moved), _FORGET_DROPS, _ADD_DROPS)
    _apply(connection, "marks_in", _marks(accounts), _SET_MARKS)


def _apply(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, *statements: str) -> None:
    """Run statements that read rows under a name; none where there are no rows."""
    if rows.num_rows:
        with registered(connection, name, rows):
            for statement in statements:
                connection.execute(statement)


@contextmanager
def registered(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> Iterator[None]:
    """Let SQL on one connection see an Arrow table under a name, for a while."""
    connection.register(name, rows)
    try:
        yield
    finally:
        connection.unregister(name)


def _drops_before(plan: Plan, account: Account) -> tuple[object, ...]:
    """The drops of a stream before a plan."""
    before = plan.before.get(account.stream)
    return before.drops if before else ()


def _range_changes(plan: Plan) -> tuple[pa.Table, pa.Table]:
    """Ranges whose first seq is no longer one, and ranges that are new or longer."""
    gone: list[tuple[int, int, int]] = []
    changed: list[tuple[int, int, int]] = []
    for stream, account in plan.after.items():
        before = plan.before.get(stream)
        old = set(before.stored) if before else set()
        new = set(account.stored)
        firsts = {part.first for part in new}
        gone.extend((account.stream_id, *part) for part in old - new if part.first not in firsts)
        changed.extend((account.stream_id, *part) for part in new - old)
    return _table(_RANGES, gone), _table(_RANGES, changed)


def _streams(accounts: Sequence[Account]) -> pa.Table:
    """Rows of `streams`."""
    own = [(account.stream_id, account.stream) for account in accounts]
    return _table(_STREAMS, [(stream_id, stream.engine, stream.epoch, stream.rank) for stream_id, stream in own])


def _drops(accounts: Sequence[Account]) -> pa.Table:
    """Rows of `drop_ranges`."""
    return _table(
        _DROPS,
        [
            (account.stream_id, int(drop.stage), int(drop.reason), drop.first_seq, drop.last_seq, drop.count)
            for account in accounts
            for drop in account.drops
        ],
    )


def _marks(accounts: Sequence[Account]) -> pa.Table:
    """Rows of `stream_marks`."""
    own = [(account.stream_id, account.marks, account.marks.clocks) for account in accounts]
    return _table(
        _MARKS,
        [
            (
                stream_id,
                marks.produced,
                int(marks.state),
                marks.heard_wall_ns,
                clocks.monotonic_ns,
                clocks.wall_ns,
                clocks.error_ns,
            )
            for stream_id, marks, clocks in own
        ],
    )


def _table(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """A few rows as an Arrow table of a pinned schema."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
