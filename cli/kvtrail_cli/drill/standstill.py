"""Whether the machine stood still during a run: then its latencies are the machine's, and say nothing of the engine."""

from __future__ import annotations

import threading
import time
from typing import Final, Self

_NAP_S: Final = 0.005
_NAP_NS: Final = 5_000_000


class Standstill:
    """A thread that sleeps for five milliseconds at a time, and sees by how much it oversleeps. A context manager; nearly free.

    It asks the clock alone, and nothing of the engine: so a run may be made again for its sake without choosing by result.
    """

    def __init__(self) -> None:
        self._overslept: list[tuple[int, int]] = []  # until when, by how much; written by the thread alone
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kvtrail-standstill", daemon=True)

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no more."""
        self._stop.set()
        self._thread.join()

    def longest_s(self, start_ns: int, end_ns: int) -> float:
        """The longest that it overslept, as far as that lies within a span of the monotonic clock."""
        within = (min(until_ns, end_ns) - max(until_ns - by_ns, start_ns) for until_ns, by_ns in self._overslept)
        return max((ns for ns in within if ns > 0), default=0) / 1e9

    def _watch(self) -> None:
        """Nap after nap."""
        while not self._stop.is_set():
            began_ns = time.monotonic_ns()
            time.sleep(_NAP_S)
            now_ns = time.monotonic_ns()
            if (by_ns := now_ns - began_ns - _NAP_NS) > _NAP_NS:
                self._overslept.append((now_ns, by_ns))
