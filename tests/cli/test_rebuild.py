"""Promises of `kvtrail rebuild`: what follows from events is as it was, of a file and of a running collector."""

from pathlib import Path

import duckdb
import msgspec
from kvtrail_cli.main import APP
from kvtrail_collector.rebuild_shapes import Rebuilt
from kvtrail_collector.store import Store, take_touched
from kvtrail_collector.testing import running_collector
from typer.testing import CliRunner

from tests.collector.frames import batch, span


def damage(connection: duckdb.DuckDBPyConnection) -> None:
    """Make projections wrong."""
    connection.execute("UPDATE requests SET arrived_ns = 0")
    connection.execute("DELETE FROM ops")
    connection.execute("DELETE FROM touched_requests")


def contents(store: Store) -> list[list[tuple[object, ...]]]:
    """All projections."""
    with store.read() as cursor:
        return [cursor.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in ("requests", "ops")]


def rebuilt(*arguments: str) -> Rebuilt:
    """What the command answers."""
    done = CliRunner().invoke(APP, ["rebuild", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout, type=Rebuilt)


def test_a_file_is_rebuilt(private_dir: Path) -> None:
    """Wrong and missing rows are right again, and every request is to be computed again outside ingest."""
    path = private_dir / "events.duckdb"
    with Store.open(str(path)) as store:
        store.submit(batch(span(1, 24))).result()
        before = contents(store)
        store.run(damage).result()
    answer = rebuilt("--db", str(path))

    assert (24, 3, 3) == (answer.events, answer.requests, answer.ops)
    with Store.open(str(path)) as store, store.read() as cursor:
        assert before == contents(store)
        assert take_touched(cursor, 10).requests.num_rows == 3


def test_a_collector_rebuilds_while_it_runs() -> None:
    """The same by a call; what is stored afterwards is stored as ever."""
    with running_collector() as collector:
        collector.store.submit(batch(span(1, 24))).result()
        before = contents(collector.store)
        collector.store.run(damage).result()

        assert 3 == rebuilt("--url", collector.url).requests
        assert before == contents(collector.store)
        assert collector.store.submit(batch(span(20, 32))).result().stored == 8


def test_a_file_that_is_not_there_is_not_made(private_dir: Path) -> None:
    """A wrong name is told, and leaves nothing behind."""
    done = CliRunner().invoke(APP, ["rebuild", "--db", str(private_dir / "none.duckdb")])

    assert done.exit_code != 0
    assert list(private_dir.iterdir()) == []
