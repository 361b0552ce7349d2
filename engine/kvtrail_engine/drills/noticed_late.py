"""noticed-late: ops end in time, and the scheduler hears of it only when it looks, which it does seldom."""

import threading

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.inbox import OpEnded


class NoticedLate(Drill):
    """Keeps the ends of ops, and hands them over every `every_ns`. A thread of its own while the fault lasts."""

    name = "noticed-late"

    def __init__(self, every_ns: int = 160_000_000) -> None:
        self._every_ns = every_ns
        self._lock = threading.Lock()
        self._kept: list[OpEnded] = []  # guarded by _lock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def value(self) -> float:
        """How seldom it looks, in ns."""
        return float(self._every_ns)

    def begin(self, engine: Engine) -> None:
        """Look seldom."""
        self._thread = threading.Thread(target=self._deliver, args=(engine,), name="kvtrail-drill-late", daemon=True)
        self._thread.start()
        engine.reports.deliver_end = self._keep

    def end(self, engine: Engine) -> None:
        """Look at once again, and hand over what is kept."""
        engine.reports.deliver_end = engine.reports.put_end
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self, ended: OpEnded) -> None:
        """On a worker's thread."""
        with self._lock:
            self._kept.append(ended)

    def _deliver(self, engine: Engine) -> None:
        """The thread's life; what comes in at its very end is handed over by the last round."""
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._every_ns / 1e9)
            with self._lock:
                ready, self._kept = self._kept, []
            for ended in ready:
                engine.reports.put_end(ended)
