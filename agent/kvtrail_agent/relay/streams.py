"""Rows of decoders into recorders: one recorder for each life and rank of an engine. Used by the relay's thread."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
from kvtrail_schema.clock import Clock
from kvtrail_schema.events import Event
from kvtrail_schema.kinds import kind_of
from kvtrail_schema.reasons import ErrorReason

from kvtrail_agent.importers.decoded import Decoded, Row
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.recorder import Recorder

StartRecorder = Callable[[int], Recorder]
"""Starts a recorder for a rank, under an epoch of its own."""

COVERAGE: Final = (
    "no requests, durations or bytes: what made a request slow cannot be said from these events",
    "times are those of an engine's step, not of an event",
    "why a block left is not told: capacity stands for every reason",
    "slots are numbered by the relay, not by the engine",
)
_MOST_KEPT: Final = 1_000


class Streams:
    """The recorders of one publisher, opened as its ranks speak, closed when it begins anew."""

    def __init__(self, start: StartRecorder, dialect: Dialect, clock: Clock) -> None:
        self._start = start
        self._dialect = dialect
        self._clock = clock
        self._recorders: dict[int, Recorder] = {}
        self._unknown: Counter[str] = Counter()
        self.rows = 0

    def write(self, decoded: Decoded) -> None:
        """The rows of one batch. Their times are wall times of the engine's host; here they go onto this host's clock.

        All events of a batch have one time: a nanosecond is added for each, so that what a clear empties is what came before.
        """
        offset_ns = self._clock.wall_ns() - self._clock.monotonic_ns()
        for part in decoded.parts:
            recorder = self._recorder(part.origin.rank)
            for place, item in enumerate(part.items):
                if isinstance(item, Row):
                    self._row(recorder, item, offset_ns - place)

    def lost(self, first: int, last: int, rank: int) -> None:
        """Batches of a publisher never came."""
        text = f"batches {first} to {last} of the engine never came; what they said of blocks is not known"
        self._recorder(rank).error(ErrorReason.PROTOCOL, text=text)

    def restart(self) -> None:
        """Everything that follows belongs to another life of the engine."""
        self.close()
        self._recorders.clear()

    def close(self) -> None:
        """End the recorders; what is not delivered yet is the shippers' affair."""
        for rank, recorder in self._recorders.items():
            for name, count in self._unknown.items() if rank == min(self._recorders) else ():
                recorder.counter_sampled(f"unknown to the relay: {name}", float(count))
            recorder.close()

    def _recorder(self, rank: int) -> Recorder:
        """The recorder of a rank."""
        known = self._recorders.get(rank)
        if known is None:
            known = self._recorders[rank] = self._start(rank)
            facts = {"engine": self._dialect.value, "source": "relay", "coverage": list(COVERAGE)}
            known.manifest_declared(json.dumps(facts))
        return known

    def _row(self, recorder: Recorder, row: Row, offset_ns: int) -> None:
        """One event, and what of it this version does not know, as far as there is room for oddities."""
        self.rows += 1
        t_ns = row.event.t_ns - offset_ns if row.event.t_ns else self._clock.monotonic_ns()
        emit(recorder, row.event, max(t_ns, 1))
        if row.extra is not None:
            name = kind_of(row.event).name.lower()
            self._unknown[name] += 1
            if self._unknown.total() <= _MOST_KEPT:
                recorder.error(
                    ErrorReason.PROTOCOL, text=f"fields of {name} that are unknown here: {row.extra}", t_ns=max(t_ns, 1)
                )


def emit(recorder: Recorder, event: Event, t_ns: int) -> None:
    """Record an event that is a value already, at a time on the recorder's clock."""
    fields = {name: value for name, value in msgspec.structs.asdict(event).items() if value is not None}
    del fields["seq"], fields["t_ns"]
    getattr(recorder, kind_of(event).name.lower())(**fields, t_ns=t_ns)
