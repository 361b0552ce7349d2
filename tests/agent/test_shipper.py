"""The shipper: when batches leave, what they say, and what happens when they are not taken."""

import random
from pathlib import Path

import pytest
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.errors import BatchRejected, TransportError, TransportUnavailable
from kvtrail_agent.ring_layout import STOPPED_SEQ
from kvtrail_agent.settings import ShipperConfig
from kvtrail_agent.shipper_lock import only_shipper
from kvtrail_agent.shipper_process import ship
from kvtrail_schema.batch import StreamState
from kvtrail_schema.identity import StepId
from kvtrail_schema.reasons import ErrorReason

from tests.agent.voyages import SECOND_NS, Voyage, voyage


def emit_steps(trip: Voyage, count: int) -> None:
    """Emit so many events."""
    for step in range(count):
        trip.ring.writer.step_started(StepId(step))


def stop(trip: Voyage) -> None:
    """End the writer in order."""
    trip.ring.file.set_word(STOPPED_SEQ, trip.ring.reader.highest_seq() + 1)
    trip.ring.close()


def test_nothing_leaves_before_it_is_due(private_dir: Path) -> None:
    """A few events wait for company until the interval has passed."""
    trip = voyage(private_dir)
    emit_steps(trip, 3)
    trip.sail(0.2)
    early = trip.transport.frames
    trip.sail(0.3)
    trip.ring.close()

    assert early == []
    assert trip.seqs == [1, 2, 3]
    assert len(trip.transport.frames) == 1


def test_full_batches_leave_at_once(private_dir: Path) -> None:
    """Events that fill batches do not wait for the interval, and one full batch does not wait for the next tick."""
    trip = voyage(private_dir)
    emit_steps(trip, 25)
    trip.sail(0.02)
    trip.ring.close()

    assert [header.count for header in trip.batches] == [10, 10]
    assert list(range(1, 21)) == trip.seqs


def test_a_silent_engine_has_heartbeats(private_dir: Path) -> None:
    """Without events a batch without rows leaves each second: it says that the shipper lives, and what was produced."""
    trip = voyage(private_dir)
    emit_steps(trip, 3)
    trip.sail(3.5)
    trip.ring.close()

    assert [header.count for header in trip.transport.headers] == [3, 0, 0, 0]
    assert {3} == {header.produced for header in trip.transport.headers}
    assert {StreamState.RUNNING} == {header.state for header in trip.transport.headers}


def test_headers_say_whose_and_when(private_dir: Path) -> None:
    """Engine, epoch and rank come from the ring; clocks are read when the batch is made."""
    trip = voyage(private_dir)
    emit_steps(trip, 1)
    trip.sail(0.3)
    trip.ring.close()
    (header,) = trip.transport.headers
    stream = trip.ring.file.stream

    assert (stream.engine, stream.epoch, stream.rank) == (header.engine, header.epoch, header.rank)
    assert header.clocks.wall_ns - header.clocks.monotonic_ns == 1_700_000_000 * SECOND_NS - 5_000


@pytest.mark.parametrize("failing", [1, 5, 30])
def test_unavailability_loses_and_doubles_nothing(failing: int, private_dir: Path) -> None:
    """However often a frame is not acknowledged, it is the same frame that goes through at last."""
    trip = voyage(private_dir, failures=[TransportUnavailable("busy") for _ in range(failing)])
    emit_steps(trip, 35)
    trip.sail(3.0 + failing)
    trip.ring.close()

    assert list(range(1, 36)) == trip.seqs
    assert trip.drops == []


def test_nothing_is_released_before_it_is_acknowledged(private_dir: Path) -> None:
    """A shipper that gives up in the middle leaves every event that nobody acknowledged to the next one."""
    trip = voyage(private_dir, failures=[TransportUnavailable("away") for _ in range(1000)])
    emit_steps(trip, 35)
    delivered = trip.sail(2.0)
    released = trip.ring.file.word(layout.READ_SEQ)
    trip.transport._failures.clear()
    trip.sail(1.0)
    trip.ring.close()

    assert (delivered, released) == (False, 0)
    assert list(range(1, 36)) == trip.seqs


def test_a_refused_batch_is_a_declared_drop(private_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the other side will never take is told as (transport, rejected), with the reason on standard error."""
    trip = voyage(private_dir, failures=[BatchRejected("too odd")])
    emit_steps(trip, 15)
    trip.sail(1.0)
    trip.ring.close()

    assert trip.drops == [("TRANSPORT", "REJECTED", 1, 10)]
    assert list(range(11, 16)) == trip.seqs
    assert "test-engine: batch refused: too odd" in capsys.readouterr().err


def test_a_refused_batch_still_tells_the_drops_that_it_carried(private_dir: Path) -> None:
    """Drops of a refused batch travel with the declaration of its own."""
    trip = voyage(private_dir, failures=[BatchRejected("too odd")])
    trip.ring.writer.step_started(StepId(-1))
    emit_steps(trip, 2)
    trip.sail(1.0)
    trip.ring.close()

    assert trip.drops == [("ENCODE", "ENCODE_ERROR", 1, 1), ("TRANSPORT", "REJECTED", 2, 3)]


def test_a_refused_heartbeat_changes_nothing(private_dir: Path) -> None:
    """It carries nothing that could be lost."""
    trip = voyage(private_dir, failures=[BatchRejected("too odd")])
    trip.at(1.5, lambda: emit_steps(trip, 3))
    trip.sail(3.0)
    trip.ring.close()

    assert trip.seqs == [1, 2, 3]
    assert trip.drops == []


_TO_ASCII = bytes(byte % 128 for byte in range(256))


def noise(size: int, seed: int) -> str:
    """A text that hardly compresses."""
    return random.Random(seed).randbytes(size).translate(_TO_ASCII).decode()


def test_a_frame_over_its_bound_goes_in_parts(private_dir: Path) -> None:
    """Twenty megabytes of texts in one batch reach a reader that takes sixteen."""
    trip = voyage(private_dir, flush_rows=1000, text_bytes=32 << 20)
    for number in range(20):
        trip.ring.writer.error(ErrorReason.IO, text=noise(1 << 20, number))
    trip.sail(0.5)
    trip.ring.close()

    assert list(range(1, 21)) == trip.seqs
    assert len(trip.batches) > 1
    assert trip.drops == []


def test_an_event_over_the_bound_is_a_declared_drop(private_dir: Path) -> None:
    """One event that no reader would take is (encode, too_large); its neighbours arrive."""
    trip = voyage(private_dir, flush_rows=1000, text_bytes=64 << 20)
    emit_steps(trip, 2)
    trip.ring.writer.error(ErrorReason.IO, text=noise(22 << 20, 1))
    emit_steps(trip, 2)
    trip.sail(0.5)
    trip.ring.close()

    assert trip.drops == [("ENCODE", "TOO_LARGE", 3, 3)]
    assert trip.seqs == [1, 2, 4, 5]


def test_an_ended_writer_is_delivered_to_the_end(private_dir: Path) -> None:
    """After the last event comes one batch without rows that says how the stream ended; then the shipper is done."""
    trip = voyage(private_dir)
    emit_steps(trip, 23)
    stop(trip)
    delivered = trip.sail(10.0)

    assert delivered
    assert list(range(1, 24)) == trip.seqs
    assert (
        trip.transport.headers[-1].count,
        trip.transport.headers[-1].produced,
        trip.transport.headers[-1].state,
    ) == (0, 23, StreamState.STOPPED)
    assert {StreamState.RUNNING} == {header.state for header in trip.transport.headers[:-1]}


def test_a_torn_writer_is_told_and_the_rest_delivered(private_dir: Path) -> None:
    """Seqs that a killed writer drew and never wrote are (process, killed); what other threads wrote behind them arrives."""
    trip = voyage(private_dir)
    emit_steps(trip, 3)
    trip.ring.lose_seq()
    emit_steps(trip, 40)
    trip.ring.lose_seq()
    emit_steps(trip, 1)
    trip.ring.close()
    delivered = trip.sail(10.0)

    assert delivered
    assert [*range(1, 4), *range(5, 45), 46] == trip.seqs
    assert trip.drops == [("PROCESS", "KILLED", 4, 4), ("PROCESS", "KILLED", 45, 45)]
    assert StreamState.KILLED == trip.transport.headers[-1].state
    assert max(header.count for header in trip.transport.headers) <= 10


def test_a_huge_rest_behind_a_hole_is_delivered(private_dir: Path) -> None:
    """What lies behind a torn seq may be more than a frame holds: it goes in parts, and none of it is forgotten."""
    trip = voyage(private_dir, flush_rows=1000, text_bytes=32 << 20)
    trip.ring.lose_seq()
    for number in range(20):
        trip.ring.writer.error(ErrorReason.IO, text=noise(1 << 20, number))
    trip.ring.close()
    delivered = trip.sail(10.0)

    assert delivered
    assert list(range(2, 22)) == trip.seqs
    assert trip.drops == [("PROCESS", "KILLED", 1, 1)]


def test_a_hole_in_a_live_writer_is_given_up_in_the_end(private_dir: Path) -> None:
    """A thread that never returns from its emit holds the others up for five seconds, not for ever."""
    trip = voyage(private_dir)
    emit_steps(trip, 2)
    trip.ring.lose_seq()
    emit_steps(trip, 3)
    trip.sail(4.9)
    before = trip.seqs
    trip.sail(6.0)
    trip.ring.close()

    assert before == [1, 2]
    assert trip.drops == [("ENCODE", "KILLED", 3, 3)]
    assert trip.seqs == [1, 2, 4, 5, 6]


def test_a_short_hole_after_a_silence_is_waited_for(private_dir: Path) -> None:
    """How long a hole has been there counts, not how long nothing moved: a thread that was just overtaken loses nothing."""
    trip = voyage(private_dir)
    writer = trip.ring.writer

    def be_overtaken() -> None:
        seq = trip.ring.lose_seq()
        emit_steps(trip, 1)
        trip.at(31.0, lambda: write_late(seq))

    def write_late(seq: int) -> None:
        produced = writer._last_seq()
        writer._begin_at(seq)  # an emit that takes up where it was torn
        writer.step_started(StepId(77))
        writer._begin_at(produced + 1)

    trip.at(30.0, be_overtaken)
    trip.sail(32.0)
    trip.ring.close()

    assert trip.seqs == [1, 2]
    assert trip.drops == []


def test_a_dead_writer_is_not_waited_for_for_ever(private_dir: Path) -> None:
    """With the engine gone and nobody taking anything, the shipper ends after a minute and leaves the ring as it is."""
    trip = voyage(private_dir, failures=[TransportUnavailable("away") for _ in range(10_000)])
    emit_steps(trip, 5)
    trip.ring.close()
    begin_ns = trip.clock.monotonic_ns()
    delivered = trip.sail(600.0)
    took_s = (trip.clock.monotonic_ns() - begin_ns) / SECOND_NS
    trip.transport._failures.clear()
    delivered_later = trip.sail(1.0)

    assert (delivered, delivered_later) == (False, True)
    assert 60 <= took_s < 63
    assert trip.seqs == [1, 2, 3, 4, 5]


def test_a_live_writer_is_waited_for(private_dir: Path) -> None:
    """While the engine lives the shipper tries on, however long the other side is away."""
    failures: list[TransportError] = [TransportUnavailable("away") for _ in range(100)]
    trip = voyage(private_dir, failures=failures)
    emit_steps(trip, 5)
    trip.sail(90.0)
    trip.ring.close()

    assert trip.seqs == [1, 2, 3, 4, 5]


def test_a_full_ring_is_drained_without_waiting(private_dir: Path) -> None:
    """Under overload batches leave back to back, although drops lie between them and the ring is smaller than a batch."""
    trip = voyage(private_dir, flush_rows=1000, slot_count=64)
    for second in range(1, 6):
        trip.at(second / 100, lambda: emit_steps(trip, 80))
    trip.sail(0.12)
    trip.ring.close()

    assert len(trip.batches) >= 3


def test_one_ring_has_one_shipper(private_dir: Path) -> None:
    """A second shipper on the same ring ends at once and touches nothing."""
    trip = voyage(private_dir)
    emit_steps(trip, 5)
    trip.ring.close()
    with only_shipper(trip.ring.path) as alone, only_shipper(trip.ring.path) as second:
        delivered = ship(ShipperConfig(trip.ring.path, trip.settings))

    assert (alone, second, delivered) == (True, False, False)
    assert trip.ring.path.exists()


def test_a_shipper_without_a_ring_tidies_up(private_dir: Path) -> None:
    """One that comes after all is delivered leaves neither a lock nor a configuration behind."""
    (private_dir / "gone.json").write_text("{}")
    delivered = ship(ShipperConfig(private_dir / "gone.ring", voyage(private_dir).settings))

    assert delivered
    assert list(private_dir.glob("gone*")) == []
