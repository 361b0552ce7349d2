"""The shipper with a spool: an outage longer than the ring loses nothing, one larger than the disk is counted, none stalls."""

import threading
import time
from pathlib import Path
from typing import Final

import pytest
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.courier import InlineCourier, ThreadCourier
from kvtrail_agent.errors import BatchRejected, TransportError, TransportUnavailable
from kvtrail_agent.recovery import send_orphan
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.ring_refusals import Refusals
from kvtrail_agent.shipper import Ended, Shipper
from kvtrail_agent.spool import Spool
from kvtrail_agent.spool_leftovers import Leftovers
from kvtrail_agent.testing import RecordingTransport
from kvtrail_schema.batch import BatchHeader, DropRange, StreamState
from kvtrail_schema.clock import ManualClock, SystemClock
from kvtrail_schema.enums import Stage
from kvtrail_schema.identity import Epoch, Rank, StepId, Stream
from kvtrail_schema.reasons import DropReason

from tests.agent.rings import make_ring
from tests.agent.test_shipper import emit_steps, stop
from tests.agent.voyages import SECOND_NS, Voyage, voyage
from tests.agent.waiting import wait_for

SMALL_RING: Final = 64


def with_spool(folder: Path, away: int = 0, limit_bytes: int = 1 << 20, slot_count: int = SMALL_RING) -> Voyage:
    """A voyage with a spool beside its ring; the transport fails so many times."""
    failures: list[TransportError] = [TransportUnavailable("away") for _ in range(away)]
    trip = voyage(folder, failures=failures, slot_count=slot_count)
    trip.spool = Spool(folder / "spool", trip.ring.path.stem, trip.ring.path, limit_bytes)
    return trip


def emit_all_along(trip: Voyage, seconds: float, a_second: int = 200) -> int:
    """Let the engine emit evenly for a while; how many events that will be."""
    ticks = int(seconds * 20)
    for tick in range(ticks):
        trip.at(tick / 20, lambda: emit_steps(trip, a_second // 20))
    return ticks * (a_second // 20)


def settled(trip: Voyage) -> list[int]:
    """Every seq that arrived or was declared lost, as often as that."""
    return sorted([*trip.seqs, *(seq for _, _, first, last in trip.drops for seq in range(first, last + 1))])


def test_an_outage_longer_than_the_ring_loses_nothing(private_dir: Path) -> None:
    """Seconds without a transport at tens of rings' worth of events: all arrive, once, in order, and the spool is gone."""
    trip = with_spool(private_dir, away=20)
    count = emit_all_along(trip, 12.0)
    trip.sail(25.0)
    trip.ring.close()

    assert list(range(1, count + 1)) == trip.seqs
    assert trip.drops == []
    assert list((private_dir / "spool").iterdir()) == []


def test_the_ring_is_free_while_nobody_takes_anything(private_dir: Path) -> None:
    """What is in the spool needs no room in the ring."""
    trip = with_spool(private_dir, away=10_000)
    count = emit_all_along(trip, 5.0)
    trip.sail(6.0)
    released = trip.ring.file.word(layout.READ_SEQ)
    trip.ring.close()

    assert count == released
    assert trip.transport.frames == []


def test_a_spool_that_is_full_counts_what_it_refuses(private_dir: Path) -> None:
    """Beyond the bound the newest events are (spool, spool_full), in few ranges, in order; all others arrive."""
    trip = with_spool(private_dir, away=20, limit_bytes=1 << 13)
    count = emit_all_along(trip, 15.0)
    trip.sail(25.0)
    trip.ring.close()
    refused = [drop for drop in trip.drops if drop[:2] == ("SPOOL", "SPOOL_FULL")]

    assert list(range(1, count + 1)) == settled(trip)
    assert refused
    assert refused == trip.drops
    assert len(refused) <= 3
    assert sorted(trip.seqs) == trip.seqs


def test_a_full_disk_is_never_a_stall(private_dir: Path) -> None:
    """With no spool to be made at all, the engine goes on, the shipper too, and every event is on the books."""
    (private_dir / "spool").write_text("a file stands where the directory should be")
    trip = with_spool(private_dir, away=15)
    count = emit_all_along(trip, 10.0)
    trip.sail(20.0)
    trip.ring.close()

    assert list(range(1, count + 1)) == settled(trip)
    assert {"SPOOL_FULL"} == {reason for _, reason, _, _ in trip.drops}


def test_refusals_outlive_a_killed_shipper(private_dir: Path) -> None:
    """What was given up is written in the ring's file first: the next shipper tells it."""
    trip = with_spool(private_dir, away=10_000, limit_bytes=1 << 13)
    count = emit_all_along(trip, 8.0)
    trip.sail(9.0)
    trip.transport._failures.clear()
    assert trip.spool is not None
    trip.spool.close()
    trip.spool = Spool(private_dir / "spool", trip.ring.path.stem, trip.ring.path, 1 << 13)
    trip.spool.adopt()
    trip.sail(3.0)
    trip.ring.close()

    assert list(range(1, count + 1)) == settled(trip)
    assert trip.drops


def test_a_rejected_frame_in_the_spool_is_a_declared_drop(private_dir: Path) -> None:
    """Replay goes past a frame that nobody will ever take, and says so."""
    trip = with_spool(private_dir, away=5)
    trip.transport._failures.append(BatchRejected("too odd"))
    emit_steps(trip, 35)
    trip.sail(10.0)
    trip.ring.close()

    assert list(range(1, 36)) == settled(trip)
    assert [("TRANSPORT", "REJECTED", 1, 10)] == trip.drops


def test_an_ended_writer_leaves_the_rest_in_the_spool(private_dir: Path) -> None:
    """With nobody taking anything the shipper ends after a minute; ring and end of the stream lie in the spool by then."""
    trip = with_spool(private_dir, away=10_000)
    emit_steps(trip, 35)
    stop(trip)
    begin_ns = trip.clock.monotonic_ns()
    trip.sail(600.0)
    took_s = (trip.clock.monotonic_ns() - begin_ns) / SECOND_NS
    assert trip.spool is not None
    trip.spool.close()
    trip.ring.path.unlink()
    transport = RecordingTransport()
    sent = send_orphan(trip.spool.directory, InlineCourier(transport, lambda _: None), clock=ManualClock())

    assert trip.ended is Ended.SPOOLED
    assert 60 <= took_s < 63
    assert sent
    assert list(range(1, 36)) == [event.seq for event in transport.events]
    assert StreamState.STOPPED == transport.headers[-1].state


def test_the_next_shipper_sends_what_was_left_behind(private_dir: Path) -> None:
    """Spools of other epochs leave between the frames of the one that is alive; one whose ring is lost is told as killed."""
    old = with_spool(private_dir, away=10_000)
    emit_steps(old, 35)
    old.sail(2.0)
    assert old.spool is not None
    old.spool.close()
    old.ring.close()
    old.ring.path.unlink()
    folder = private_dir / "rings"
    folder.mkdir()
    clock = ManualClock(1)
    ring = make_ring(folder, clock=clock, stream=Stream("test-engine", Epoch(77), Rank(3)))
    ring.writer.step_started(StepId(1))
    transport = RecordingTransport()

    def sleep(pause_s: float) -> None:
        clock.advance(int(pause_s * SECOND_NS))
        if clock.monotonic_ns() > 5 * SECOND_NS:
            shipper.halt()

    courier, leftovers = InlineCourier(transport, sleep), Leftovers(private_dir / "spool")
    shipper = Shipper(open_ring(ring.path), courier, old.settings, clock=clock, leftovers=leftovers)
    shipper.run()
    ring.close()
    left = [header for header in transport.headers if header.epoch != 77]

    assert 35 == sum(header.count for header in left)
    assert StreamState.KILLED == left[-1].state
    assert list((private_dir / "spool").iterdir()) == []


def test_a_spool_whose_ring_is_there_is_left_to_its_shipper(private_dir: Path) -> None:
    """Only what nobody will come back for is taken over."""
    trip = with_spool(private_dir, away=10_000)
    emit_steps(trip, 35)
    trip.sail(2.0)
    assert trip.spool is not None
    trip.spool.close()
    found = Leftovers(private_dir / "spool").current(0)
    trip.ring.close()

    assert found is None


class HangingTransport(RecordingTransport):
    """Blocks in every send for as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Hang, then keep the frame."""
        self.go_on.wait(30)
        super().send(frame, header)


def test_a_transport_that_hangs_does_not_keep_the_shipper_from_the_ring(private_dir: Path) -> None:
    """One send that takes seconds costs no event, though the ring holds much less; the frame under way comes once."""
    trip = with_spool(private_dir, slot_count=512)
    transport = HangingTransport()
    shipper = Shipper(open_ring(trip.ring.path), ThreadCourier(transport), trip.settings, clock=SystemClock(), spool=trip.spool)
    thread = threading.Thread(target=shipper.run, name="shipper")
    thread.start()
    for _ in range(100):
        emit_steps(trip, 10)
        time.sleep(0.02)
    wait_for(lambda: trip.ring.file.word(layout.READ_SEQ) >= 1000, "a free ring")
    early = transport.frames
    transport.go_on.set()
    stop(trip)
    thread.join(30)
    rows = [event.seq for event in transport.events]

    assert early == []
    assert not thread.is_alive()
    assert list(range(1, 1001)) == rows


def test_refusals_that_find_no_room_on_the_books_are_not_refused(private_dir: Path) -> None:
    """The table is short: it takes a set of ranges whole or not at all, and a range that goes on needs no room."""
    ring = make_ring(private_dir)
    refusals = Refusals(ring.file)
    far = [DropRange(Stage.SPOOL, DropReason.SPOOL_FULL, 10 * n, 10 * n, 1) for n in range(1, layout.REFUSED_ENTRIES + 1)]
    taken = refusals.add(far)
    more = refusals.add([DropRange(Stage.SPOOL, DropReason.SPOOL_FULL, 9990, 9990, 1)])
    grown = refusals.add(
        [DropRange(Stage.SPOOL, DropReason.SPOOL_FULL, 10 * layout.REFUSED_ENTRIES + 1, 10 * layout.REFUSED_ENTRIES + 5, 5)]
    )
    last = refusals.ranges()[-1]
    refusals.clear()
    ring.close()

    assert (taken, more, grown) == (True, False, True)
    assert (10 * layout.REFUSED_ENTRIES, 10 * layout.REFUSED_ENTRIES + 5) == (last.first_seq, last.last_seq)
    assert refusals.ranges() == ()


@pytest.mark.parametrize("halted_at", [0.3, 1.0, 5.0])
def test_a_shipper_that_is_halted_and_followed_loses_and_doubles_nothing(halted_at: float, private_dir: Path) -> None:
    """Whenever a shipper ends, the next one takes up ring and spool where they are, in the order of the stream."""
    trip = with_spool(private_dir, away=9)
    count = emit_all_along(trip, 8.0)
    trip.sail(halted_at)
    assert trip.spool is not None
    trip.spool.close()
    trip.spool = Spool(private_dir / "spool", trip.ring.path.stem, trip.ring.path, 1 << 20)
    trip.spool.adopt()
    trip.script = [(second - halted_at, act) for second, act in trip.script]
    trip.sail(20.0)
    trip.ring.close()

    assert list(range(1, count + 1)) == trip.seqs
