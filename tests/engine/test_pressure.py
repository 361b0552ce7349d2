"""Full queues: loads wait and say so, writes are skipped and say so, and nothing is lost or stuck."""

from collections import Counter
from pathlib import Path

from kvtrail_engine.proof import settle
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BackpressureOff, BackpressureOn, Evicted, RequestRejected, RequestWaiting, SwapOutSkipped
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import EvictReason, RejectReason, SwapOutSkipReason, WaitReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny

MS = 1_000_000
SLOW = FloorSettings(read_latency_ns=20 * MS, write_latency_ns=20 * MS)


def test_a_full_queue_pushes_back(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """With room for one op, requests wait for the queue and writes are left out; every answer still comes."""
    host = TierSettings(slots=40, queue_ops=1, floor=SLOW)
    nvme = TierSettings(slots=256, queue_ops=1, floor=SLOW)
    engine = start_engine(tiny(data_dir, host=host, nvme=nvme))
    for handle in [engine.submit(ask(number, 5 * 32)) for number in range(8)]:
        handle.result(10)
    handles = [engine.submit(ask(number % 8, 5 * 32)) for number in range(24)]
    outcomes = {handle.result(30).outcome for handle in handles}
    settle(engine)
    skipped = {event.reason for event in recorded.of(SwapOutSkipped)}

    assert outcomes == {Outcome.FINISHED}
    assert WaitReason.BACKPRESSURE in {event.reason for event in recorded.of(RequestWaiting)}
    assert SwapOutSkipReason.BACKPRESSURE in skipped
    assert len(recorded.of(BackpressureOn)) - len(recorded.of(BackpressureOff)) in {0, 1, 2}
    assert fold(recorded.events).violations == ()


def test_only_so_many_may_wait(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Past the bound a request is rejected at once, with backpressure as the reason; who waits already is served."""
    engine = start_engine(tiny(data_dir, step=StepSettings(max_sequences=1, max_waiting=3, floor_ns=10 * MS)))
    results = [handle.result(30) for handle in [engine.submit(ask(number)) for number in range(12)]]
    outcomes = Counter(result.outcome for result in results)
    late = engine.submit(ask(1)).result(10)

    assert {Outcome.FINISHED, Outcome.REJECTED} == set(outcomes)
    assert outcomes[Outcome.FINISHED] >= 3
    assert [RejectReason.BACKPRESSURE] * outcomes[Outcome.REJECTED] == [event.reason for event in recorded.of(RequestRejected)]
    assert Outcome.FINISHED is late.outcome
    assert fold(recorded.events).violations == ()


def test_room_is_kept_on_the_gpu(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Idle copies leave as soon as there is less room than the settings want, not only when a prompt needs it."""
    engine = start_engine(tiny(data_dir, gpu_low_slots=36))
    for number in range(4):
        engine.submit(ask(number, 3 * 32)).result(10)
    settle(engine)
    engine.submit(ask(9, 8, 1)).result(10)

    assert engine.statistics().pools[Tier.GPU].free >= 36
    assert EvictReason.CAPACITY in {event.reason for event in recorded.of(Evicted)}
