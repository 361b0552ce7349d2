"""What the recorder itself wrote during a drill: each event of the engine once, and judged as an operator would judge it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.transports.file import read_segments
from kvtrail_collector.detectors.scene import Bounds
from kvtrail_collector.diagnose_store import diagnose_store
from kvtrail_collector.gate_store import INVARIANTS
from kvtrail_collector.steps.decode import decode
from kvtrail_collector.store import MEMORY, Store
from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.clock import Clock
from kvtrail_schema.counters import RECORDER_COST
from kvtrail_schema.events import CounterSampled, Event
from kvtrail_schema.header import DEFAULT_LIMITS
from kvtrail_schema.identity import Stream
from kvtrail_schema.lifecycle import fold

ENGINE: Final = "drill"
_SLOTS: Final = 1 << 15
_FLUSH_MS: Final = 50
_BEAT_MS: Final = 100
_PATIENCE_S: Final = 20.0
_EVER_NS: Final = 2**62
_ROWS: Final = """
SELECT events.* FROM events JOIN streams USING (stream_id) WHERE engine = ? AND epoch = ? AND streams.rank = ? ORDER BY seq
"""
_OWN_KINDS: Final = ("agent_", "clock_stepped", "events_dropped")


class OwnFile(NamedTuple):
    """What a recorder wrote."""

    events: tuple[Event, ...]
    produced: int
    codes: frozenset[str]
    """What diagnosing the file says."""

    @property
    def is_whole(self) -> bool:
        """Whether every event that was recorded is there once, and none follows what it may not follow."""
        seqs = sorted(event.seq for event in self.events)
        return seqs == list(range(1, self.produced + 1)) and not fold(self.events).violations

    def kinds(self) -> Counter[str]:
        """How many of each kind the engine told; what the recorder says of itself is left out."""
        told = Counter(str(event.__struct_config__.tag) for event in self.events if not _is_own_cost(event))
        return Counter({kind: count for kind, count in told.items() if not kind.startswith(_OWN_KINDS)})

    def broken(self, shows: Collection[str]) -> list[str]:
        """Promises that were broken by the file's word, beside those that a drill is about; and those that it does not say."""
        return sorted((self.codes & INVARIANTS) - set(shows)) + sorted(f"no {code}" for code in set(shows) - self.codes)


def _is_own_cost(event: Event) -> bool:
    """Whether an event is what the recorder says of its own cost."""
    return isinstance(event, CounterSampled) and event.text == RECORDER_COST


class Recording:
    """A recorder at work, and, once it has ended, what it wrote."""

    def __init__(self, recorder: Recorder, folder: Path) -> None:
        self.recorder = recorder
        self._folder = folder

    def read(self) -> OwnFile:
        """What it wrote. A second or two; once the recorder has ended."""
        return read_file(self._folder, self.recorder.stream, self.recorder.produced)


@contextmanager
def recording(folder: Path, clock: Clock | None = None) -> Iterator[Recording]:
    """A recorder that writes into a folder, with its shipper in a process of its own, until the block ends."""
    events = folder / "events"
    recorder = Recorder.start(recorder_settings(folder, events.as_uri()), clock=clock)
    try:
        yield Recording(recorder, events)
    finally:
        recorder.close(_PATIENCE_S)


def recorder_settings(folder: Path, transport: str) -> AgentSettings:
    """A small recorder, quick to deliver, all of it in a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return AgentSettings(
        engine=ENGINE,
        transport=transport,
        ring_dir=folder / "rings",
        spool_dir=folder / "spool",
        slot_count=_SLOTS,
        flush_interval_ms=_FLUSH_MS,
        heartbeat_interval_ms=_BEAT_MS,
    )


def read_file(folder: Path, stream: Stream, produced: int) -> OwnFile:
    """What lies in a folder of frames: one recorder's events in order, and what diagnosing them says."""
    with Store.open(MEMORY) as store:
        for done in [store.submit(decode(frame, 0, DEFAULT_LIMITS)) for frame in read_segments(folder)]:
            done.result()
        return read_store(store, stream, produced)


def read_store(store: Store, stream: Stream, produced: int) -> OwnFile:
    """The same, of what a store holds of that recorder."""
    with store.read() as cursor:
        rows = cursor.execute(_ROWS, [stream.engine, stream.epoch, stream.rank]).to_arrow_table()
    events = tuple(event for event in events_of(rows) if not isinstance(event, UnknownEvent))
    verdicts = diagnose_store(store, None, Bounds(engine=stream.engine), _EVER_NS).verdicts
    return OwnFile(events, produced, frozenset(verdict.code for verdict in verdicts))
