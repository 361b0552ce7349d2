"""The shipper: carries a ring's events away. Its process is in `shipper_process.py`, what becomes of frames in `delivery.py`.

It takes no interpreter time from the engine, and it outlives it: when the engine is killed it ships what is left and
says what was torn. Room in the ring is given back only once a frame is acknowledged or lies in the spool, so a shipper
that is killed loses nothing either; what it had sent and not given back is sent again, and the collector keeps each seq once.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kvtrail_schema.batch import StreamState
from kvtrail_schema.clock import Clock

from kvtrail_agent.courier import Courier
from kvtrail_agent.delivery import Delivery, Offer
from kvtrail_agent.packing import Packed, Packer
from kvtrail_agent.ring_file import RingFile
from kvtrail_agent.ring_reader import RingReader
from kvtrail_agent.ring_refusals import Refusals
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.spool import Spool
from kvtrail_agent.spool_leftovers import Leftovers

_SECOND_NS: Final = 1_000_000_000
_STUCK_NS: Final = 5 * _SECOND_NS
LINGER_NS: Final = 60 * _SECOND_NS
"""How long a shipper whose engine is gone waits for a transport that takes nothing."""
TICK_S: Final = 0.02


class Ended(Enum):
    """Where the events of a ring are when its shipper ends."""

    DELIVERED = "delivered"
    SPOOLED = "spooled"  # the ring is settled, the spool has the rest
    HELD = "held"  # the ring has the rest


@dataclass(slots=True)
class Pace:
    """When the shipper last did what; used by its one thread."""

    read_ns: int
    hole_seq: int = 0  # the unwritten seq that others have overtaken, and since when it is known
    hole_since_ns: int = 0
    writer_gone_ns: int | None = None
    said_end: bool = False


class Shipper:
    """Delivers one ring. Runs in one thread, of a process of its own or (in tests) of the engine's."""

    def __init__(
        self,
        ring: RingFile,
        courier: Courier,
        settings: AgentSettings,
        *,
        clock: Clock,
        spool: Spool | None = None,
        leftovers: Leftovers | None = None,
        linger_ns: int = LINGER_NS,
        seed: int = 0,
    ) -> None:
        self._ring = ring
        self._reader = RingReader(ring)
        self._refusals = Refusals(ring)
        self._packer = Packer(ring, self._reader, self._refusals, clock, settings.flush_rows)
        self._courier = courier
        self._delivery = Delivery(courier, spool, clock=clock, leftovers=leftovers, seed=seed, name=ring.stream.engine)
        self._settings = settings
        self._clock = clock
        self._packed: deque[Packed] = deque()
        self._linger_ns = linger_ns
        self._halt = False
        self._pace = Pace(read_ns=clock.monotonic_ns())

    def halt(self) -> None:
        """Stop soon, leaving the rest where it is. May be called from any thread or a signal handler."""
        self._halt = True

    def run(self) -> Ended:
        """Deliver until the writer is gone and everything is delivered, or nobody has taken anything for long after that."""
        while not self._halt:
            self._delivery.collect()
            moved = self._move()
            self._delivery.begin_next()
            if self._is_settled and self._delivery.is_empty:
                return Ended.DELIVERED
            if self._has_given_up():
                break
            if not moved:
                self._courier.wait(TICK_S)
        return Ended.SPOOLED if self._is_settled else Ended.HELD

    @property
    def _is_settled(self) -> bool:
        """Whether the ring holds nothing any more that the spool or the other side does not have."""
        return self._pace.said_end and not self._packed

    def _move(self) -> bool:
        """Bring the next frame on its way; says whether one is settled, so that another one may be due at once."""
        state = self._state()
        if state is not StreamState.RUNNING and self._pace.writer_gone_ns is None:
            self._pace.writer_gone_ns = self._clock.monotonic_ns()
        if not self._packed:
            self._packed.extend(self._read(state))
        if not self._packed:
            return False
        is_pressed = state is StreamState.RUNNING and self._reader.is_ready(self._ring.slot_count)
        offer = self._delivery.offer(self._packed[0].parcel, is_pressed=is_pressed)
        if offer is Offer.SETTLED:
            self._release(self._packed.popleft())
            return True
        return offer is Offer.REFUSED and is_pressed and self._refuse()

    def _state(self) -> StreamState:
        """What is known of the writer. Asking whether it is dead first means that nothing can be written after the answer."""
        dead = self._ring.writer_is_dead()
        if self._reader.stopped:
            return StreamState.STOPPED
        return StreamState.KILLED if dead else StreamState.RUNNING

    def _read(self, state: StreamState) -> list[Packed]:
        """What is due: of a live writer a batch or a heartbeat, of a dead one the rest and then how the stream ended."""
        if state is StreamState.RUNNING:
            return self._read_due()
        chunk = self._reader.read(self._settings.flush_rows)
        if chunk.is_empty:
            # What is left now lies behind a seq that its writer never finished.
            chunk = self._reader.read_rest()
        if not chunk.is_empty:
            return self._packer.pack(chunk, StreamState.RUNNING)
        if self._pace.said_end:
            return []
        self._pace.said_end = True
        return self._packer.pack(self._reader.read(1), state)

    def _read_due(self) -> list[Packed]:
        """A full batch at once, a part of one after the interval, a heartbeat after its own."""
        settings, now = self._settings, self._clock.monotonic_ns()
        since_ns = now - self._pace.read_ns
        if not self._reader.is_ready(settings.flush_rows) and since_ns < settings.flush_interval_ms * 1_000_000:
            return []
        chunk = self._reader.read(settings.flush_rows)
        if chunk.is_empty and self._is_stuck(chunk.first_seq):
            chunk = self._reader.read_hole()
        if chunk.is_empty and since_ns < settings.heartbeat_interval_ms * 1_000_000:
            return []
        self._pace.read_ns = now
        return self._packer.pack(chunk, StreamState.RUNNING)

    def _is_stuck(self, seq: int) -> bool:
        """Whether a seq that is not written, though later ones are, has been so for long: its thread will not come back."""
        now = self._clock.monotonic_ns()
        if self._reader.highest_seq() < seq:
            return False
        if self._pace.hole_seq != seq:
            self._pace.hole_seq, self._pace.hole_since_ns = seq, now
        return now - self._pace.hole_since_ns > _STUCK_NS

    def _release(self, packed: Packed) -> None:
        """Give back the room of what is settled."""
        if not packed.chunk.is_empty:
            self._reader.release(packed.chunk)
        if packed.refusals:
            self._refusals.clear()

    def _refuse(self) -> bool:
        """Give up the newest events, on the books before they are gone; says whether the books had room for them.

        Where they have none, the events stay in the ring, and the ring counts what it cannot take.
        """
        packed = self._packed[0]
        if not self._refusals.add(packed.as_refused()):
            return False
        self._packed.popleft()
        self._delivery.withdraw()
        self._reader.release(packed.chunk)
        return True

    def _has_given_up(self) -> bool:
        """Whether the writer has been gone for long, and nobody has taken anything for as long."""
        gone_ns = self._pace.writer_gone_ns
        now = self._clock.monotonic_ns()
        return gone_ns is not None and now - max(gone_ns, self._delivery.progress_ns) > self._linger_ns
