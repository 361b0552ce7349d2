"""What sealing does inside a transaction of the writer: take rows out of the hot file, let parts expire, strike lost ones.

Each function changes tables and returns the accounts that change with them; the writer takes those over after the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.identity import Stream
from kvtrail_schema.reasons import DropReason

from kvtrail_collector.errors import StoreBroken
from kvtrail_collector.projections import Projection
from kvtrail_collector.projections.requests import REQUESTS_PROJECTION
from kvtrail_collector.store.account import Account
from kvtrail_collector.store.commit import write_books
from kvtrail_collector.store.drops import merge_drops
from kvtrail_collector.store.latencies import remember_latencies
from kvtrail_collector.store.parts import ALL, Part, Seqs, add_part, files_sql, forget_parts, load_parts, seqs_of, show_all
from kvtrail_collector.store.plan import Plan
from kvtrail_collector.store.ranges import RangeSet
from kvtrail_collector.store.seal_read import Due
from kvtrail_collector.store.touched import touch

Accounts = Mapping[Stream, Account]

_FIRST: Final = "SELECT coalesce(min(rowid), 0) FROM "
_GONE: Final = "gone_keys"


def take_out(connection: duckdb.DuckDBPyConnection, part: Part, seqs: Seqs, due: Due, folder: Path) -> None:
    """Move the oldest rows from the hot tables into the books of a part whose file is written.

    Raises:
        StoreBroken: the oldest rows are no longer those of the file; nothing was changed, and sealing will try again.
    """
    prefixes = [
        prefix._replace(first=int(connection.execute(_FIRST + prefix.table).fetchall()[0][0])) for prefix in due.prefixes
    ]
    rows = " UNION ALL ".join(prefix.sql("stream_id, seq") for prefix in prefixes)
    sums = f"SELECT stream_id, count(*), sum(seq::HUGEINT) FROM ({rows}) GROUP BY stream_id"  # noqa: S608  # names of ours
    found = {stream_id: (count, total) for stream_id, count, total in connection.execute(sums).fetchall()}
    if found != {stream_id: (own.size, _sum(own)) for stream_id, own in seqs.items()}:
        do = "nothing: it is tried again; report it if it stays"
        raise StoreBroken("the oldest events are not those of the file", where=part.file, do=do)
    for prefix in prefixes:
        connection.execute(f"DELETE FROM {prefix.table} WHERE rowid < ?", [prefix.first + prefix.rows])  # noqa: S608  # as above
    add_part(connection, part, seqs)
    show_all(connection, load_parts(connection), folder)


def expire(
    connection: duckdb.DuckDBPyConnection,
    accounts: Accounts,
    parts: Sequence[Part],
    folder: Path,
    projections: Sequence[Projection],
) -> Accounts:
    """Let parts go for good: their seqs become `dropped(collector, retention)`, and projections forget what is gone.

    Their requests are touched, so that what is computed outside ingest forgets them, too.
    """
    changed = {
        stream: _expired(account, own) for stream, (account, own) in _touched(accounts, seqs_of(connection, parts)).items()
    }
    write_books(connection, Plan({stream: accounts[stream] for stream in changed}, changed, None, ()))
    forget_parts(connection, parts)
    show_all(connection, load_parts(connection), folder)
    for projection in projections:
        _forget_keys(connection, projection, files_sql(parts, folder))
    connection.execute(touch(files_sql(parts, folder)))
    return changed


def strike(connection: duckdb.DuckDBPyConnection, accounts: Accounts, parts: Sequence[Part], folder: Path | None) -> Accounts:
    """Take parts off the books whose files are gone or cut: their seqs are not stored any more, and nobody explains that."""
    changed = {
        stream: replace(account, stored=account.stored.subtract(own))
        for stream, (account, own) in _touched(accounts, seqs_of(connection, parts)).items()
    }
    write_books(connection, Plan({stream: accounts[stream] for stream in changed}, changed, None, ()))
    forget_parts(connection, parts)
    show_all(connection, load_parts(connection), folder)
    return changed


def _touched(accounts: Accounts, seqs: Seqs) -> dict[Stream, tuple[Account, RangeSet]]:
    """The accounts of the streams of some seqs, and which seqs those are."""
    return {stream: (account, seqs[account.stream_id]) for stream, account in accounts.items() if account.stream_id in seqs}


def _expired(account: Account, gone: RangeSet) -> Account:
    """An account after some of its seqs expired."""
    drops = [DropRange(Stage.COLLECTOR, DropReason.RETENTION, first, last, last - first + 1) for first, last in gone]
    return replace(account, stored=account.stored.subtract(gone), drops=merge_drops([*account.drops, *drops]))


def _forget_keys(connection: duckdb.DuckDBPyConnection, projection: Projection, files: str) -> None:
    """Compute the rows of a projection again that expired events were part of: most are gone, some have newer events."""
    key = projection.key
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_GONE} AS SELECT DISTINCT stream_id, {key} FROM {files} WHERE {key} IS NOT NULL"  # noqa: S608  # names of ours
    )
    if projection is REQUESTS_PROJECTION:
        remember_latencies(connection, _GONE, sign=1)
    connection.execute(
        f"DELETE FROM {projection.table} AS old USING {_GONE} AS gone "  # noqa: S608  # as above
        f"WHERE old.stream_id = gone.stream_id AND old.{key} = gone.{key}"
    )
    left = f"(SELECT * FROM {ALL} SEMI JOIN {_GONE} USING (stream_id, {key}))"  # noqa: S608  # as above
    connection.execute(projection.merge_from(left))
    if projection is REQUESTS_PROJECTION:
        remember_latencies(connection, _GONE, sign=-1)
    connection.execute(f"DROP TABLE {_GONE}")


def _sum(numbers: RangeSet) -> int:
    """The sum of all numbers of a set."""
    return sum((first + last) * (last - first + 1) // 2 for first, last in numbers)
