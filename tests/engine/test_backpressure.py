"""Backpressure: each layer begins once, ends once it is half empty, and tells both; admission follows the disk."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.backpressure import Pressure, QueueWatch
from kvtrail_engine.ids import Ids
from kvtrail_engine.proof import settle
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import FloorSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.queue import TransferQueue
from kvtrail_engine.tiers.transfer import Transfer
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    AdmissionLimited,
    BackpressureOff,
    BackpressureOn,
    RequestWaiting,
    SwapOutQueued,
    SwapOutSkipped,
)
from kvtrail_schema.identity import OpId
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import AdmissionReason, BackpressureReason, SwapOutSkipReason, WaitReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny

MS = 1_000_000
SLOW = FloorSettings(read_latency_ns=15 * MS, write_latency_ns=15 * MS)


def op(number: int) -> Transfer:
    """Some op for a queue."""
    return Transfer(OpId(number), Tier.HOST, Tier.NVME, (), 0)


@given(capacity=st.integers(1, 8), steps=st.lists(st.booleans(), max_size=60))
def test_a_queue_pushes_back_from_full_to_half_empty(capacity: int, steps: list[bool]) -> None:
    """However it fills and drains: on exactly from full until at most half is taken, each change told once, in turn."""
    recorded, queue = CollectingEmitter(), TransferQueue(capacity)
    pressure = Pressure(recorded.as_emitter(), Ids())
    watch, waiting, expected = QueueWatch(pressure, {Tier.NVME: queue}), 0, False
    for number, fills in enumerate(steps):
        if fills:
            waiting += queue.offer_nowait(op(number))
        elif waiting:
            queue.take()
            waiting -= 1
        watch.review()
        expected = waiting >= capacity or (expected and waiting > capacity // 2)

        assert expected == pressure.is_on(BackpressureReason.DISK_QUEUE)
    kinds = [type(event) for event in recorded.events]

    assert kinds == [BackpressureOn, BackpressureOff] * (len(kinds) // 2) + [BackpressureOn] * expected
    assert pressure.statistics().begun == kinds.count(BackpressureOn)


def test_a_full_disk_queue_lowers_admission(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Fewer prompts are in work while the disk's queue is full, waiting requests say why, and the limit goes up again."""
    nvme = TierSettings(slots=256, queue_ops=2, floor=SLOW)
    engine = start_engine(tiny(data_dir, nvme=nvme, op_blocks=1, host_low_slots=20))
    handles = [engine.submit(ask(number, 4 * 32)) for number in range(30)]
    outcomes = {handle.result(30).outcome for handle in handles}
    settle(engine)
    engine.submit(ask(99, 32)).result(10)
    changes = recorded.of(AdmissionLimited)
    begun = {event.id for event in recorded.of(BackpressureOn) if event.reason is BackpressureReason.DISK_QUEUE}

    assert outcomes == {Outcome.FINISHED}
    assert begun
    assert AdmissionReason.BACKPRESSURE == changes[0].reason
    assert changes[0].cause in begun
    assert AdmissionReason.CLEARED == changes[-1].reason
    assert changes[0].tokens < changes[-1].tokens
    assert [change.reason for change in changes[::2]] == [AdmissionReason.BACKPRESSURE] * len(changes[::2])
    assert WaitReason.BACKPRESSURE in {event.reason for event in recorded.of(RequestWaiting)}
    assert fold(recorded.events).violations == ()


def test_a_full_host_queue_pauses_saves(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """No write to host is queued between the two events, and each that is left out says so."""
    host = TierSettings(slots=40, queue_ops=2, floor=SLOW)
    engine = start_engine(tiny(data_dir, host=host, op_blocks=1))
    for handle in [engine.submit(ask(number, 5 * 32)) for number in range(20)]:
        handle.result(30)
    settle(engine)
    engine.submit(ask(99, 32)).result(10)
    on, off = recorded.of(BackpressureOn), recorded.of(BackpressureOff)
    skipped = [event for event in recorded.of(SwapOutSkipped) if event.reason is SwapOutSkipReason.BACKPRESSURE]

    changes: list[BackpressureOn | BackpressureOff] = [*on, *off]
    told = sorted((e for e in changes if e.reason is BackpressureReason.HOST_QUEUE), key=lambda event: event.seq)
    spans = list(zip(told[::2], told[1::2], strict=True))
    queued = [event.seq for event in recorded.of(SwapOutQueued) if event.dst is Tier.HOST]

    assert spans
    assert [(BackpressureOn, BackpressureOff)] * len(spans) == [(type(begun), type(ended)) for begun, ended in spans]
    assert [] == [seq for seq in queued if any(begun.seq < seq < ended.seq for begun, ended in spans)]
    assert len(on) == len(off)
    assert skipped
    assert fold(recorded.events).violations == ()


def test_nothing_is_told_while_nothing_is_full(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """An engine at ease tells no backpressure, and limits nothing."""
    engine = start_engine(tiny(data_dir))
    for number in range(6):
        engine.submit(ask(number)).result(10)

    assert recorded.of(BackpressureOn) == []
    assert recorded.of(AdmissionLimited) == []
    assert engine.statistics().pressure.admission_tokens is None
