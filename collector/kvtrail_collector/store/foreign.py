"""The one place where errors of DuckDB become ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from kvtrail_collector.errors import StoreBroken, StoreClosed, StoreError, StoreNewer, StoreUnavailable, StoreUnusable

_LOCKED: Final = "Could not set lock"
_OTHER_VERSION: Final = "version number"


@contextmanager
def map_duckdb_errors(where: str) -> Iterator[None]:
    """Raise our errors in place of DuckDB's; the most specific one wins.

    Raises:
        StoreError: in one of its subclasses, with DuckDB's error as its cause.
    """
    try:
        yield
    except duckdb.Error as error:
        raise ours(error, where) from error


def ours(error: duckdb.Error, where: str) -> StoreError:
    """The error of ours that stands for one of DuckDB's."""
    what = str(error).strip().split("\n", 1)[0]
    if isinstance(error, duckdb.ConnectionException):
        return StoreClosed(what, where=where, do="start the collector again")
    if isinstance(error, duckdb.FatalException | duckdb.InternalException):
        return StoreUnusable(what, where=where, do="start the collector again; what it acknowledged is on disk")
    if isinstance(error, duckdb.IOException):
        return _of_a_file(what, where)
    return StoreBroken(what, where=where, do="report it with this text; nothing of this transaction was kept")


def _of_a_file(what: str, where: str) -> StoreError:
    """The error of ours for one that a file caused."""
    if _LOCKED in what:
        do = "one process owns a file: ask the collector that has it, by its url, or stop it; a second one needs another file"
        return StoreUnavailable("another process holds the file", where=where, do=do)
    if _OTHER_VERSION in what:
        return StoreNewer(what, where=where, do="start the kvtrail (and duckdb) that wrote it, or choose another file")
    return StoreUnavailable(
        what, where=where, do="check that the path is a kvtrail store, that we may write it, and that the disk has room"
    )
