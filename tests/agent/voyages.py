"""A shipper at work on a clock that moves only while it sleeps, with a script of what happens meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kvtrail_agent.courier import InlineCourier
from kvtrail_agent.errors import TransportError
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipper import Ended, Shipper
from kvtrail_agent.spool import Spool
from kvtrail_agent.testing import RecordingTransport
from kvtrail_schema.batch import BatchHeader
from kvtrail_schema.clock import ManualClock
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

from tests.agent.rings import TestRing, make_ring

SECOND_NS = 1_000_000_000


@dataclass
class Voyage:
    """A ring, the transport that its events leave by, and the time that has passed."""

    ring: TestRing
    clock: ManualClock
    transport: RecordingTransport
    settings: AgentSettings
    script: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    spool: Spool | None = None
    ended: Ended = Ended.HELD

    def at(self, second: float, act: Callable[[], object]) -> None:
        """Let something happen at a second of the voyage."""
        self.script.append((second, act))

    def sail(self, seconds: float) -> bool:
        """Run a shipper for so long; it is told to halt then, unless it ends before. Says whether all is delivered."""
        begin_ns = self.clock.monotonic_ns()
        opened = open_ring(self.ring.path)

        def sleep(pause_s: float) -> None:
            self.clock.advance(int(pause_s * SECOND_NS))
            now_s = (self.clock.monotonic_ns() - begin_ns) / SECOND_NS
            while self.script and self.script[0][0] <= now_s:
                self.script.pop(0)[1]()
            if now_s >= seconds:
                shipper.halt()

        courier = InlineCourier(self.transport, sleep)
        shipper = Shipper(opened, courier, self.settings, clock=self.clock, spool=self.spool)
        self.ended = shipper.run()
        opened.close()
        return self.ended is Ended.DELIVERED

    @property
    def batches(self) -> list[BatchHeader]:
        """The headers of the batches with events."""
        return [header for header in self.transport.headers if header.count]

    @property
    def heartbeats(self) -> list[BatchHeader]:
        """The headers without events and without drops."""
        return [header for header in self.transport.headers if not header.count and not header.drops]

    @property
    def drops(self) -> list[tuple[str, str, int, int]]:
        """Every declared drop as (stage, reason, first, last)."""
        headers = self.transport.headers
        return [
            (Stage(d.stage).name, DropReason(d.reason).name, d.first_seq, d.last_seq)
            for header in headers
            for d in header.drops
        ]

    @property
    def seqs(self) -> list[int]:
        """The seqs of all delivered events, in order of arrival."""
        return [event.seq for event in self.transport.events]


def voyage(
    folder: Path,
    *,
    failures: list[TransportError] | None = None,
    flush_rows: int = 10,
    slot_count: int = 1024,
    text_bytes: int = 1 << 16,
) -> Voyage:
    """A ring and a shipper to be: batches of ten, an interval of 0.25 s, a heartbeat each second."""
    clock = ManualClock(monotonic_ns=5_000, wall_ns=1_700_000_000 * SECOND_NS)
    ring = make_ring(folder, slot_count, text_bytes, clock)
    settings = AgentSettings(
        engine="test-engine",
        transport="file:///unused",
        flush_rows=flush_rows,
        flush_interval_ms=250,
        heartbeat_interval_ms=1000,
    )
    return Voyage(ring, clock, RecordingTransport(failures or ()), settings)
