"""What a Kafka source says of itself: written by its thread, read by `/readyz` and `/metrics`. Loads no Kafka client."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class SourceState(Enum):
    """What a source is doing."""

    CONNECTING = "connects"
    READING = "reads"
    PAUSED = "waits for the store, which has as much as it can hold"
    LOST = "cannot go on, and tries again"
    STOPPED = "has ended"


@dataclass(frozen=True, slots=True)
class KafkaStatistics:
    """A moment of a source; counts are since the start."""

    state: SourceState = SourceState.CONNECTING
    detail: str = ""
    """Why it does not read, where it does not."""
    lag: Mapping[int, int] = field(default_factory=dict)
    """Records that are in a partition and not stored, by partition, when it was last asked."""
    records: int = 0
    """Records taken from the brokers, those that came again included."""
    quarantined: int = 0
    """Records that could not be read or stored, and were put aside."""
    rereads: int = 0
    """Times that it went back to the stored offsets, because a batch was not stored."""
    dead_letters_failed: int = 0
    """Records put aside that the dead-letter topic did not take."""


class KafkaMonitor:
    """Holds the newest statistics. Any thread; cheap."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = KafkaStatistics()  # guarded by _lock

    def statistics(self) -> KafkaStatistics:
        """The newest statistics."""
        with self._lock:
            return self._now

    def enter(self, state: SourceState, detail: str = "") -> None:
        """Say what the source does now, and why."""
        with self._lock:
            self._now = replace(self._now, state=state, detail=detail)

    def lag(self, lag: Mapping[int, int]) -> None:
        """Say how far the source is behind."""
        with self._lock:
            self._now = replace(self._now, lag=dict(lag))

    def count(self, *, records: int = 0, quarantined: int = 0, rereads: int = 0, dead_letters_failed: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            now = self._now
            self._now = replace(
                now,
                records=now.records + records,
                quarantined=now.quarantined + quarantined,
                rereads=now.rereads + rereads,
                dead_letters_failed=now.dead_letters_failed + dead_letters_failed,
            )
