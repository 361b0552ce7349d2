"""Questions in SQL from people: one SELECT, on a read-only transaction, bounded in rows and time.

The store has files, network and settings locked away from all SQL (`store.py`); memory is bounded by its `memory_limit`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import duckdb

from kvtrail_collector.errors import Busy, QuestionInvalid
from kvtrail_collector.sql_shapes import Cell, SqlAnswer
from kvtrail_collector.store import Store

_AT_ONCE: Final = 2
_WHERE: Final = "sql"


class SqlLimits(NamedTuple):
    """How much one question may take."""

    rows: int = 1_000
    seconds: float = 30.0


class SqlDesk:
    """Answers questions in SQL, two at a time. Any worker thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def answer(self, text: str, limits: SqlLimits) -> SqlAnswer:
        """The rows of one SELECT. Blocks for as long as the limit allows, not longer.

        Raises:
            Busy: two others ask.
            QuestionInvalid: it is no single SELECT, it is wrong, or it takes too long.
        """
        if not self._places.acquire(blocking=False):
            raise Busy("others ask in SQL already", where=_WHERE, do="ask again in a few seconds")
        try:
            with self._store.read() as cursor:
                return _answer(cursor, text, limits)
        finally:
            self._places.release()


def _answer(cursor: duckdb.DuckDBPyConnection, text: str, limits: SqlLimits) -> SqlAnswer:
    """Run one SELECT and take as many rows as may be."""
    with _our_errors(limits):
        statement = _one_select(cursor, text)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        with _interrupted(cursor, limits.seconds):
            cursor.execute(statement)
            names = tuple(str(column[0]) for column in cursor.description or ())
            rows = cursor.fetchmany(limits.rows + 1)
    shown = tuple(tuple(_cell(value) for value in row) for row in rows[: limits.rows])
    return SqlAnswer(names, shown, len(rows) > limits.rows)


def _one_select(cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """The statement of a text that has one, which only reads."""
    statements = cursor.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        do = "ask one SELECT; docs/store.md lists tables and views"
        raise QuestionInvalid("this is not one SELECT", where=_WHERE, do=do)
    return statements[0]


@contextmanager
def _interrupted(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """End what runs on a cursor when its time is over."""
    timer = threading.Timer(seconds, cursor.interrupt)
    timer.name, timer.daemon = "kvtrail-sql-timer", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _our_errors(limits: SqlLimits) -> Iterator[None]:
    """What is wrong with a question is its asker's error; what is wrong with the database is left as it is."""
    try:
        yield
    except duckdb.InterruptException as error:
        do = "bound the rows that it reads, by kind or by time"
        raise QuestionInvalid(f"it took longer than {limits.seconds:g} s", where=_WHERE, do=do) from error
    except (duckdb.FatalException, duckdb.InternalException):
        raise
    except duckdb.Error as error:
        what = str(error).partition("\n")[0]
        raise QuestionInvalid(what, where=_WHERE, do="mend the query; docs/store.md lists tables and views") from error


def _cell(value: object) -> Cell:
    """A value as JSON has it: bytes as hex, what JSON does not know as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): _cell(member) for name, member in value.items()}
    if isinstance(value, Sequence):
        return [_cell(member) for member in value]
    return str(value)
