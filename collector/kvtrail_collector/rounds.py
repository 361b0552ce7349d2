"""Work that is done again and again beside ingest, on a thread of its own: what fails is counted and tried again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Self

from kvtrail_collector.errors import CollectorError

MOST_HELD_S: Final = 5.0
"""How long a round waits at most for ingest: so what is computed beside it comes late under load, and never not at all."""
_LOOK_S: Final = 0.1
_LOG: Final = logging.getLogger(__name__)


class Rounds:
    """A named thread that does a piece of work every so many seconds. A context manager; ends after the round under way.

    While events wait to be stored a round waits for them: ingest comes first. It waits no longer than `MOST_HELD_S`; without
    `busy` it does not wait.
    """

    def __init__(
        self, name: str, work: Callable[[], bool], *, every_s: float, busy: Callable[[], bool] | None, failed: str
    ) -> None:
        """The work says whether the next round is due at once; `failed` says for the log what did not come about."""
        self._work, self._every_s, self._busy, self._said = work, every_s, busy, failed
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._failures = 0  # guarded by _lock
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, after the round that is under way."""
        self._stopping.set()
        self._thread.join()

    @property
    def failures(self) -> int:
        """Rounds that failed; each was, or will be, tried again. Any thread."""
        with self._lock:
            return self._failures

    def _run(self) -> None:
        """Round after round."""
        again = False
        while not self._stopping.wait(0 if again else self._every_s):
            self._let_ingest_first()
            again = not self._stopping.is_set() and self._round()

    def _let_ingest_first(self) -> None:
        """Wait while events wait to be stored, within bounds."""
        for _ in range(round(MOST_HELD_S / _LOOK_S)):
            if self._busy is None or not self._busy() or self._stopping.wait(_LOOK_S):
                return

    def _round(self) -> bool:
        """One round; says whether the next one is due at once."""
        try:
            return self._work()
        except CollectorError as error:
            _LOG.warning("%s, and will be tried again: %s", self._said, error)
        except Exception:  # noqa: BLE001 - a defect in one round must not end all of them
            _LOG.exception("%s, and will be tried again", self._said)
        with self._lock:
            self._failures += 1
        return False
