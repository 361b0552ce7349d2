"""Promise of the sealer's thread: no defect in one pass ends sealing and retention."""

import time
from pathlib import Path

import pytest
from kvtrail_collector.store import SealPolicy, Store, sealer
from kvtrail_collector.store.seal_read import find_due

from tests.collector.frames import batch, span

LONGEST_S = 20.0


def test_a_defect_ends_no_sealing(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that fails in whatever way is counted, and a later one seals what is due."""
    left = [ZeroDivisionError("a defect")]

    def first_fails(*args: object) -> object:
        """Fail once."""
        if left:
            raise left.pop()
        return find_due(*args)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(sealer, "find_due", first_fails)
    policy = SealPolicy(folder=private_dir / "sealed", seal_after_ns=1, part_rows=30, every_s=0.05)
    with Store.open(str(private_dir / "events.duckdb"), seal=policy) as store:
        store.submit(batch(span(1, 80))).result()
        until = time.monotonic() + LONGEST_S
        while not store.sealed().parts and time.monotonic() < until:
            time.sleep(0.02)

        assert 1 == store.sealed().failures
        assert 1 <= store.sealed().parts
