"""The promise of sealing under `kill -9`: at whatever moment, each event is hot or sealed, once, and the books know it."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kvtrail_collector.store import SealPolicy, Store

from tests.packages import ROOT

# Ingests and seals without a pause, on two threads; says after each acknowledged batch how far it is, and how many parts
# there are.
BUSY: Final = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from kvtrail_collector.store import SealPolicy, Store
from tests.collector.frames import batch, span
policy = SealPolicy(folder=Path(sys.argv[2] + ".sealed"), seal_after_ns=1, part_rows=200, every_s=0.001)
with Store.open(sys.argv[2], seal=policy) as store:
    begin = max((account.stored.highest for account in store.accounts().values()), default=0)
    for first in range(begin + 1, 1_000_000, 50):
        store.submit(batch(span(first, first + 49))).result()
        print(first + 49, store.sealed().parts, flush=True)
"""
KILLS: Final = 6
SEED: Final = 20


def run_and_kill(path: Path, wait_s: float) -> int:
    """Let the process work until something is sealed, and a while longer; kill it; the last seq that it acknowledged."""
    command = [sys.executable, "-c", BUSY, str(ROOT), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        while said[-1].split()[1:] == ["0"]:
            said.append(process.stdout.readline())
        time.sleep(wait_s)
        process.kill()
        said += process.stdout.read().splitlines()
    whole = [line for line in said if len(line.split()) == 2]
    return int(whole[-1].split()[0])


def test_kill_9_while_sealing_loses_and_doubles_nothing(private_dir: Path) -> None:
    """Killed six times at random moments: rows, books and files agree, and nothing acknowledged is missing."""
    path, draw = private_dir / "events.duckdb", random.Random(SEED)
    for _ in range(KILLS):
        acknowledged = run_and_kill(path, draw.uniform(0.1, 1.5))
        folder = Path(f"{path}.sealed")
        with Store.open(str(path), seal=SealPolicy(folder, seal_after_ns=1 << 60, every_s=0)) as store:
            with store.read() as cursor:
                rows, distinct, highest = cursor.execute(
                    "SELECT count(*), count(DISTINCT seq), max(seq) FROM events"
                ).fetchall()[0]
            (account,) = store.accounts().values()
            parts = store.sealed().parts
            files = len(list(folder.iterdir())) if folder.exists() else 0

        assert rows == distinct == highest == account.stored.size
        assert acknowledged <= rows <= acknowledged + 50
        assert parts == files

    assert parts > 0
