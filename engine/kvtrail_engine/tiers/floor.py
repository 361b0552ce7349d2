"""A floor under the time of an op: a deadline that the real copy runs against."""

import threading

from kvtrail_engine.clock import Clock
from kvtrail_engine.settings import FloorSettings


class Floor:
    """Asked by a tier's workers, changed by drills.

    `settings` is replaced as a whole and read once an op: no lock needed.
    """

    def __init__(self, settings: FloorSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock

    def deadline_ns(self, start_ns: int, size_bytes: int, *, write: bool) -> int:
        """The earliest moment at which an op of this size, in service since `start_ns`, may end."""
        return start_ns + self.settings.cost_ns(size_bytes, write=write)

    def hold_until_ns(self, deadline_ns: int, stop: threading.Event) -> None:
        """Sleep what is left, or until the op is called off; blocks the calling worker alone."""
        while (left_ns := deadline_ns - self._clock.now_ns()) > 0 and not stop.wait(left_ns / 1e9):
            pass
