"""Promises of the migrations: they make the tables that the code expects, and never touch a file from the future."""

import shutil
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa
from duckdb_engine import ConnectionWrapper
from kvtrail_collector.errors import StoreNewer, StoreUnavailable
from kvtrail_collector.store import Store
from kvtrail_collector.store.migrate import migrate, newest_revision, revision_of
from kvtrail_collector.store.tables import METADATA
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA
from sqlalchemy.pool import StaticPool

from tests.collector.frames import batch, span

COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
WHERE table_name != 'alembic_version' ORDER BY table_name, ordinal_position
"""


HEAD = newest_revision() or "none"
"""The revision of our newest step."""

NEXT_STEP = f"""
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.add_column("hot_events", sa.Column("more", sa.Text))
    pass  # next
"""


def columns_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str, str]]:
    """Every column of every table of ours, in order."""
    return connection.execute(COLUMNS).fetchall()


def test_migrations_make_what_the_metadata_says() -> None:
    """An empty file that went through all steps has exactly the tables of `tables.py`."""
    migrated, declared = duckdb.connect(":memory:"), duckdb.connect(":memory:")
    migrate(migrated, where="memory")
    engine = sa.create_engine("duckdb://", creator=lambda: ConnectionWrapper(declared), poolclass=StaticPool)
    with engine.begin() as speaking:
        METADATA.create_all(speaking, checkfirst=False)

    assert columns_of(declared) == columns_of(migrated)


def test_the_table_of_events_has_every_pinned_column() -> None:
    """A column that joins the contract needs a migration: the table has all of them, in order, with the stream before them."""
    expected = ["stream_id", *EVENT_SCHEMA.names, EXTRA]

    assert expected == [column.name for column in METADATA.tables["hot_events"].columns]


def test_migrating_twice_changes_nothing() -> None:
    """A file that is up to date is left alone."""
    connection = duckdb.connect(":memory:")
    migrate(connection, where="memory")
    before = columns_of(connection)
    migrate(connection, where="memory")

    assert before == columns_of(connection)


@pytest.fixture
def next_version(private_dir: Path) -> Path:
    """Our steps, and one more that a next version could have: it adds a column, and then a second one."""
    steps = private_dir / "steps"
    shutil.copytree(str(files("kvtrail_migrations")), steps, ignore=shutil.ignore_patterns("__pycache__"))
    (steps / "versions" / "v9998_more.py").write_text(NEXT_STEP)
    return steps


def test_an_older_file_is_upgraded_with_its_rows(private_dir: Path, next_version: Path) -> None:
    """A file that lacks the last step gets it when it is opened, and keeps what it holds."""
    path = private_dir / "events.duckdb"
    with Store.open(str(path)) as store:
        store.submit(batch(span(1, 3))).result()
    with duckdb.connect(str(path)) as connection:
        migrate(connection, where=str(path), steps=next_version)

        assert revision_of(connection) == "next"
        assert connection.execute("SELECT seq, more FROM hot_events").fetchall() == [(1, None)]
        assert connection.execute("SELECT seq FROM hot_common ORDER BY seq").fetchall() == [(2,), (3,)]


def test_an_upgrade_that_fails_changes_nothing(private_dir: Path, next_version: Path) -> None:
    """Half an upgrade is none: the file can still be opened by the version that wrote it."""
    path = private_dir / "events.duckdb"
    (next_version / "versions" / "v9998_more.py").write_text(NEXT_STEP.replace("pass  # next", "raise ValueError('injected')"))
    with Store.open(str(path)) as store:
        store.submit(batch(span(1, 3))).result()
    with duckdb.connect(str(path)) as connection:
        before = columns_of(connection)
        with pytest.raises(ValueError, match="injected"):
            migrate(connection, where=str(path), steps=next_version)

        assert (revision_of(connection), columns_of(connection)) == (HEAD, before)
    with Store.open(str(path)) as store:
        assert [account.stored.size for account in store.accounts().values()] == [3]


def test_an_empty_file_gets_all_steps(private_dir: Path) -> None:
    """The oldest file is one without any table."""
    path = private_dir / "events.duckdb"
    duckdb.connect(str(path)).close()
    with Store.open(str(path)) as store, store.read() as cursor:
        revision = revision_of(cursor)

    assert revision == HEAD


def test_a_newer_file_is_refused_untouched(private_dir: Path) -> None:
    """The error names the file, its revision, ours, and what to do; the file stays as it was."""
    path = private_dir / "events.duckdb"
    Store.open(str(path)).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreNewer) as caught:
        Store.open(str(path))
    trouble = caught.value.trouble
    assert str(path) == trouble.where
    assert ("9999" in trouble.what, HEAD in trouble.what) == (True, True)
    assert "kvtrail that wrote it" in trouble.do
    with duckdb.connect(str(path)) as connection:
        assert revision_of(connection) == "9999"


def test_a_file_of_somebody_else_is_refused(private_dir: Path) -> None:
    """What is no database is not overwritten."""
    path = private_dir / "notes.txt"
    path.write_text("not a database, but longer than a header of one" * 400)

    with pytest.raises(StoreUnavailable):
        Store.open(str(path))
    assert path.read_text().startswith("not a database")


def test_only_its_owner_can_read_a_file(private_dir: Path) -> None:
    """A new file has mode 0600: events are not for everybody on the machine."""
    path = private_dir / "new" / "events.duckdb"
    Store.open(str(path)).close()

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
