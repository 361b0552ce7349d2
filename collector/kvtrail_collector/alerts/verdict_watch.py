"""The thread `kvtrail-alert-verdicts`: judges the last minutes again and again, for rules that name a verdict's code.

Only where some rule does: judging takes the store's time. It is for people; what must act in seconds looks at other measures.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final, Self

from kvtrail_schema.clock import Clock

from kvtrail_collector.alerts.evaluate import Asked
from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.scene import Bounds
from kvtrail_collector.diagnose_store import diagnose_store
from kvtrail_collector.rounds import Rounds
from kvtrail_collector.store import Account, Store

EVERY_S: Final = 15.0
LOOK_BACK_NS: Final = 120_000_000_000
_HEARD_NS: Final = 60_000_000_000
_FAILED: Final = "verdicts for alerts could not be found"


class VerdictWatch:
    """Keeps how many verdicts of each code each engine had in the last two minutes. A context manager."""

    def __init__(self, store: Store, clock: Clock, thresholds: Thresholds) -> None:
        self._store, self._clock, self._thresholds = store, clock, thresholds
        self._lock = threading.Lock()
        self._figures = Asked({})  # guarded by _lock; replaced, never changed
        self._rounds = Rounds("kvtrail-alert-verdicts", self._round, every_s=EVERY_S, busy=store.is_filling, failed=_FAILED)

    def __enter__(self) -> Self:
        """Start judging."""
        self._rounds.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """End, after the judgement that is under way."""
        self._rounds.__exit__()

    def figures(self) -> Asked:
        """What was found last. Any thread; cheap."""
        with self._lock:
            return self._figures

    def judge(self) -> None:
        """Judge every engine that was heard of lately. Blocks for as long as diagnosing takes.

        Raises:
            CollectorError: the store cannot be asked; what was found before stays.
        """
        now_wall_ns, found = self._clock.wall_ns(), dict[tuple[str, str], float]()
        for engine, start_ns in _starts(self._store.accounts().values(), now_wall_ns).items():
            bounds = Bounds(start_ns, None, engine)
            for verdict in diagnose_store(self._store, None, bounds, now_wall_ns, self._thresholds).verdicts:
                key = (f"verdict:{verdict.code}", engine)
                found[key] = found.get(key, 0.0) + 1
        with self._lock:
            self._figures = Asked(found)

    def _round(self) -> bool:
        """A judgement; the next one waits its time."""
        self.judge()
        return False


def _starts(accounts: Iterable[Account], now_wall_ns: int) -> dict[str, int]:
    """Where the look at each engine heard of lately begins: the earliest of its ranks, whose clocks may be of several hosts.

    Of several epochs of a rank only the one heard of last counts: its clock may have begun anew. Epochs are drawn at random.
    """
    newest: dict[tuple[str, int], Account] = {}
    for account in sorted(accounts, key=lambda one: one.marks.heard_wall_ns):
        if now_wall_ns - account.marks.heard_wall_ns <= _HEARD_NS:
            newest[account.stream.engine, account.stream.rank] = account
    starts: dict[str, int] = {}
    for account in newest.values():
        engine, start_ns = account.stream.engine, account.marks.clocks.monotonic_ns - LOOK_BACK_NS
        starts[engine] = min(start_ns, starts.get(engine, start_ns))
    return starts
