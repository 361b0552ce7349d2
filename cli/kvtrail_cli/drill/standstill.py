"""Whether the machine stood still during a run: then its latencies are the machine's, and say nothing of the engine."""

from __future__ import annotations

import threading
import time
from typing import Final, Self

_NAP_S: Final = 0.005


class Standstill:
    """A thread that sleeps for five milliseconds at a time, and sees by how much it oversleeps. A context manager; nearly free.

    It asks the clock alone, and nothing of the engine: so a run may be made again for its sake without choosing by result.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0  # written by the thread alone
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

    def _watch(self) -> None:
        """Nap after nap."""
        while not self._stop.is_set():
            began_s = time.monotonic()
            time.sleep(_NAP_S)
            self.longest_s = max(self.longest_s, time.monotonic() - began_s - _NAP_S)
