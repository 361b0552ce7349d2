"""Promises of work beside ingest: it lets ingest go first, but not for ever, and a failure ends nothing."""

import threading
import time
from collections.abc import Callable

import pytest
from kvtrail_collector import rounds
from kvtrail_collector.errors import StoreBroken
from kvtrail_collector.rounds import Rounds

LONGEST_S = 20.0
EVERY_S = 0.01


def test_ingest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """While events wait no round begins before its patience ends; then one does, and once nothing waits they go on."""
    monkeypatch.setattr(rounds, "MOST_HELD_S", 0.5)
    began: list[float] = []
    waiting = threading.Event()
    waiting.set()

    def work() -> bool:
        """Note when it is done."""
        began.append(time.monotonic())
        return False

    start = time.monotonic()
    with Rounds("kvtrail-test", work, every_s=EVERY_S, busy=waiting.is_set, failed="nothing"):
        _until(lambda: len(began) >= 2)
        held = began[0] - start, began[1] - began[0]
        waiting.clear()
        _until(lambda: len(began) >= 10)

    assert min(held) >= 0.5


def test_a_failure_is_counted_and_tried_again() -> None:
    """Whatever a round raises, the next one comes."""
    left: list[Exception] = [StoreBroken("full", where="disk", do="wait"), ZeroDivisionError("a defect")]
    done = threading.Event()

    def work() -> bool:
        """Fail twice."""
        if left:
            raise left.pop()
        done.set()
        return False

    with Rounds("kvtrail-test", work, every_s=EVERY_S, busy=lambda: False, failed="nothing came about") as running:
        came = done.wait(LONGEST_S)

    assert came
    assert 2 == running.failures


def _until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, which it must in a while."""
    until = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(EVERY_S)
