"""Rows of decoders into recorders while an engine runs: one recorder a life and rank of what speaks. Used by one thread.

Behind a recorder events outlive this process, wait on disk while nobody takes them, and are counted where they are dropped.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final

from kvtrail_schema.clock import Clock
from kvtrail_schema.kinds import kind_of
from kvtrail_schema.reasons import ErrorReason

from kvtrail_agent.importers.decoded import Decoded, Lost, Origin, Row
from kvtrail_agent.importers.format import Missing
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.relay.streams import emit

StartRecorder = Callable[[Origin], Recorder]
"""Starts a recorder for an origin, under an epoch of its own."""
SURELY_WALL_NS: Final = 10**18
"""Times from 2001 on: no clock that counts from the start of a machine is there."""
_MOST_RECORDERS: Final = 64


class LiveRows:
    """Writes what decoders give. Promises: a new life of an origin has an epoch of its own; the older one is closed."""

    def __init__(self, start: StartRecorder, source: str, missing: Sequence[Missing], clock: Clock) -> None:
        self._start = start
        self._manifest = json.dumps({"source": source, "coverage": [f"{one.what}: {one.so_what}" for one in missing]})
        self._clock = clock
        self._recorders: dict[Origin, Recorder] = {}
        self.rows = 0
        self.lost = 0
        self.quarantined = 0

    def write(self, decoded: Decoded) -> None:
        """The rows of one record. Times of day go onto this host's monotonic clock."""
        offset_ns = self._clock.wall_ns() - self._clock.monotonic_ns()
        self.quarantined += len(decoded.bad)
        for part in decoded.parts:
            if not part.items:
                continue
            recorder = self._recorder(part.origin)
            for item in part.items:
                if isinstance(item, Lost):
                    self.lost += item.events
                    text = f"{item.events} of the source's own numbers never came; what they told is not known"
                    recorder.error(ErrorReason.PROTOCOL, text=text)
                else:
                    self._row(recorder, item, offset_ns)

    def close(self) -> None:
        """End all recorders; what is not delivered yet is their shippers' affair."""
        for recorder in self._recorders.values():
            recorder.close()
        self._recorders.clear()

    def _row(self, recorder: Recorder, row: Row, offset_ns: int) -> None:
        """One event, and what of it this version does not know."""
        self.rows += 1
        told_ns = row.event.t_ns
        t_ns = max(told_ns - offset_ns if told_ns >= SURELY_WALL_NS else told_ns, 1)
        emit(recorder, row.event, t_ns)
        if row.extra is not None:
            name = kind_of(row.event).name.lower()
            recorder.error(ErrorReason.PROTOCOL, text=f"unknown fields of {name}: {row.extra}"[:1_000], t_ns=t_ns)

    def _recorder(self, origin: Origin) -> Recorder:
        """The recorder of an origin; opening one of a newer life ends those before it."""
        known = self._recorders.get(origin)
        if known is None:
            for other in [one for one in self._recorders if one._replace(life=0) == origin._replace(life=0)]:
                if other.life < origin.life:
                    self._recorders.pop(other).close()
            while len(self._recorders) >= _MOST_RECORDERS:
                self._recorders.pop(next(iter(self._recorders))).close()
            known = self._recorders[origin] = self._start(origin)
            known.manifest_declared(self._manifest)
        return known
