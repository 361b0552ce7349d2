"""Promises of the map of errors: DuckDB's never leave the store, and each of them has one of ours."""

import duckdb
import pytest
from kvtrail_collector.errors import StoreBroken, StoreClosed, StoreError, StoreNewer, StoreUnavailable, StoreUnusable
from kvtrail_collector.store.foreign import map_duckdb_errors, ours
from kvtrail_collector.testing import memory_store

FOREIGN = [kind for kind in vars(duckdb).values() if isinstance(kind, type) and issubclass(kind, duckdb.Error)]


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_error_of_duckdb_has_one_of_ours(kind: type[duckdb.Error]) -> None:
    """Whatever DuckDB raises, now or when it grows, becomes a store error with the original as its cause."""
    with pytest.raises(StoreError) as caught, map_duckdb_errors("here"):
        raise kind("what")

    assert isinstance(caught.value.__cause__, kind)
    assert caught.value.trouble.where == "here"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (duckdb.IOException("Could not set lock on file"), StoreUnavailable),
        (duckdb.IOException("read a database file with version number 99"), StoreNewer),
        (duckdb.IOException("No space left on device"), StoreUnavailable),
        (duckdb.FatalException("invalidated"), StoreUnusable),
        (duckdb.InternalException("assertion"), StoreUnusable),
        (duckdb.ConnectionException("closed"), StoreClosed),
        (duckdb.ConversionException("value"), StoreBroken),
    ],
)
def test_the_most_specific_one_wins(error: duckdb.Error, expected: type[StoreError]) -> None:
    """What a caller can do about it decides the class."""
    assert type(ours(error, "here")) is expected


def test_readers_get_our_errors_and_no_files() -> None:
    """A statement that fails is an error of ours; reaching for other files fails whatever the statement."""
    with memory_store() as store:
        with pytest.raises(StoreBroken), store.read() as cursor:
            cursor.execute("SELECT * FROM nowhere")
        with pytest.raises(StoreError), store.read() as cursor:
            cursor.execute("SELECT * FROM read_text('/etc/hostname')")
        with pytest.raises(StoreError), store.read() as cursor:
            cursor.execute("SET enable_external_access = true")
