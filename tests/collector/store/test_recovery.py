"""The promise of a kill under full load: what was acknowledged is there, and 2 GB of memory are enough to find it.

`KVTRAIL_LONG=1` kills fifteen times in place of twice.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from kvtrail_collector.store import Store

KILLS: Final = 15 if os.environ.get("KVTRAIL_LONG") == "1" else 2
MEMORY: Final = "2GB"
LARGEST_LOG_BYTES: Final = 128 << 20
FILL: Final = """
import sys
from kvtrail_cli.bench.mix import Mix
from kvtrail_collector.store import Incoming, Store
from kvtrail_schema.batch import decode_batch
frames = list(Mix(5_000, epoch=int(sys.argv[2])).frames(30_000))
with Store.open(sys.argv[1], memory_limit=sys.argv[3]) as store:
    print("ready", flush=True)
    waiting = [store.submit(Incoming(decode_batch(frame), 1)) for frame in frames]
    for done in waiting:
        print(done.result().stored, flush=True)
    sys.stdin.read()
"""


def fill_until_killed(path: Path, epoch: int, after_s: float) -> int:
    """Fill a store from a process of its own as fast as it goes, kill that, and say how many events it acknowledged."""
    command = [sys.executable, "-c", FILL, str(path), str(epoch), MEMORY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        # The last line may have been cut by the kill: then nobody was told.
        return sum(int(line) for line in process.stdout if line.endswith("\n"))


@pytest.mark.timeout(600)
def test_a_kill_under_full_load_is_recovered_within_two_gigabytes(private_dir: Path) -> None:
    """Killed at random moments while hundreds of thousands of rows a second come in: rows are the books, no less than told."""
    path, draw, told = private_dir / "events.duckdb", random.Random(26), 0
    for epoch in range(1, KILLS + 1):
        told += fill_until_killed(path, epoch, draw.uniform(0.2, 2.0))
        log = path.with_name(f"{path.name}.wal")
        assert not log.exists() or log.stat().st_size <= LARGEST_LOG_BYTES
        with Store.open(str(path), memory_limit=MEMORY) as store, store.read() as cursor:
            rows, different = cursor.execute("SELECT count(*), count(DISTINCT (stream_id, seq)) FROM events").fetchall()[0]
            booked = sum(account.stored.size for account in store.accounts().values())

        assert rows == different == booked
        assert told <= rows
