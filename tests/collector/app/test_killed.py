"""The promise that matters most: a collector killed in mid-ingest loses no acknowledged event and doubles none."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
from kvtrail_collector.store import Store
from kvtrail_schema.batch import CONTENT_TYPE

from tests.collector.frames import frame, span

SERVE: Final = """
import sys
from kvtrail_collector.serve import serve
from kvtrail_collector.settings import Settings
serve(Settings(store=sys.argv[1], port=0), on_bound=lambda address: print(address.url, flush=True))
"""
ROWS_A_BATCH: Final = 200
KILLS: Final = 3


@contextmanager
def collector(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A collector in a process of its own, and its address; killed at the end if it still runs."""
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def send_until_killed(url: str, first_batch: int, enough: threading.Event) -> list[int]:
    """Send one batch after another until nobody answers; returns the numbers of the acknowledged ones."""
    acknowledged: list[int] = []
    with httpx.Client(base_url=url, headers={"content-type": CONTENT_TYPE}) as client:
        for number in range(first_batch, first_batch + 10_000):
            begin = number * ROWS_A_BATCH
            try:
                client.post("/v1/events", content=frame(span(begin + 1, begin + ROWS_A_BATCH))).raise_for_status()
            except httpx.HTTPError:
                return acknowledged
            acknowledged.append(number)
            if len(acknowledged) >= 5:
                enough.set()
    return acknowledged


def kill_after(process: subprocess.Popen[str], enough: threading.Event) -> None:
    """Kill a process once enough has happened."""
    enough.wait(60)
    process.kill()


def test_kill_9_loses_no_acknowledged_event_and_doubles_none(private_dir: Path) -> None:
    """Killed three times while batches stream in: each acknowledged batch is there, whole and once; so are its retries."""
    path = private_dir / "events.duckdb"
    acknowledged: list[int] = []
    for _ in range(KILLS):
        with collector(path) as (process, url):
            enough = threading.Event()
            # The last kill may have swallowed an acknowledgement: that batch is sent again, as a shipper does.
            first = acknowledged[-1] + 1 if acknowledged else 0
            killer = threading.Thread(target=kill_after, args=(process, enough), name="test-killer")
            killer.start()
            acknowledged += send_until_killed(url, first, enough)
            killer.join()

    with Store.open(str(path)) as store, store.read() as cursor:
        rows, distinct, highest = cursor.execute("SELECT count(*), count(DISTINCT seq), max(seq) FROM events").fetchall()[0]
        requests = cursor.execute("SELECT count(*) FROM requests").fetchall()[0][0]
        (account,) = store.accounts().values()

    assert list(range(len(acknowledged))) == acknowledged
    assert rows == distinct == highest == account.stored.size
    assert len(acknowledged) * ROWS_A_BATCH <= rows <= (len(acknowledged) + 1) * ROWS_A_BATCH
    assert rows // 8 == requests


def test_an_orderly_stop_leaves_nothing_behind(private_dir: Path) -> None:
    """SIGTERM ends the collector with status 0; its file is whole without a log beside it, readable by its owner alone."""
    path = private_dir / "events.duckdb"
    with collector(path) as (process, url):
        httpx.post(f"{url}/v1/events", content=frame(span(1, 9)), headers={"content-type": CONTENT_TYPE}).raise_for_status()
        modes = {file.name: file.stat().st_mode & 0o777 for file in private_dir.iterdir()}
        process.terminate()
        status = process.wait(timeout=30)

    assert status == 0
    assert {0o600} == set(modes.values())
    assert [file.name for file in private_dir.iterdir()] == ["events.duckdb"]


def test_a_second_collector_on_the_same_file_is_refused(private_dir: Path) -> None:
    """One process owns a file; another one says so and ends, and the first one goes on."""
    path = private_dir / "events.duckdb"
    with collector(path) as (_, url):
        second = subprocess.run(
            [sys.executable, "-c", SERVE, str(path)], capture_output=True, text=True, timeout=60, check=False
        )

        assert second.returncode != 0
        assert "another process holds the file" in second.stderr
        assert httpx.get(f"{url}/healthz").status_code == 200
