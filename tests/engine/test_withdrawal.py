"""Work that nobody wants any more ends at once."""

from functools import partial
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import PrefillChunk, RequestCancelled, SwapInFailed, SwapInLoaded, SwapInQueued, SwapInStarted
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import CancelReason, SwapInFailReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import BLOCK, ask, tiny

MS = 1_000_000
SLOW = TierSettings(slots=40, workers=1, floor=FloorSettings(read_latency_ns=80 * MS))


def stored(engine: Engine, *numbers: int) -> None:
    """Have prompts on host alone."""
    for number in numbers:
        engine.submit(ask(number)).result(10)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))


def test_a_queued_load_is_withdrawn_at_once(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """The op leaves its queue with its request, was never in service, and its parts are its wait alone."""
    engine = start_engine(tiny(data_dir, host=SLOW))
    stored(engine, 1, 2)
    first = engine.submit(ask(1))
    second = engine.submit(ask(2))
    while len({event.op for event in recorded.of(SwapInQueued)}) < 2:
        pass
    second.cancel()
    called_off = second.result(10)
    waiting = engine.statistics().queues[Tier.HOST].waiting
    first.result(10)
    failed = recorded.of(SwapInFailed)
    queued_ns = next(event.t_ns for event in recorded.of(SwapInQueued) if event.op == failed[0].op)
    loaded_ns = max(event.t_ns for event in recorded.of(SwapInLoaded))

    assert Outcome.CANCELLED is called_off.outcome
    assert 0 == waiting
    assert {SwapInFailReason.CANCELLED} == {event.reason for event in failed}
    assert failed[0].t_ns < loaded_ns
    assert failed[0].t_ns - queued_ns == failed[0].queue_ns
    assert failed[0].op not in {event.op for event in recorded.of(SwapInStarted)}
    assert () == fold(recorded.events).violations


def test_a_load_that_others_wait_for_goes_on(data_dir: Path, start_engine: StartEngine) -> None:
    """Calling off one of two requests for the same prefix takes nothing from the other."""
    engine = start_engine(tiny(data_dir, host=SLOW))
    stored(engine, 1, 2)
    engine.submit(ask(2))
    pair = [engine.submit(ask(1)) for _ in range(2)]
    pair[0].cancel()
    other = pair[1].result(10)

    assert Outcome.CANCELLED is pair[0].result(10).outcome
    assert Outcome.FINISHED is other.outcome
    assert BLOCK == other.computed_tokens


@pytest.mark.parametrize("tier", [Tier.HOST, Tier.NVME])
@pytest.mark.parametrize("is_superseded", [False, True])
def test_a_load_in_service_stops_midway(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, tier: Tier, is_superseded: bool
) -> None:
    """A load that would take a minute ends with its request, says cancelled, and leaves its worker and its source to others."""
    engine = start_engine(tiny(data_dir, host=TierSettings(slots=40), nvme=TierSettings(slots=40)))
    stored(engine, 1, 2)
    sink(engine, tier)
    engine.floor_of(tier).settings = FloorSettings(read_latency_ns=60_000 * MS)
    old = engine.submit(ask(1))
    while not recorded.of(SwapInStarted):
        pass
    engine.floor_of(tier).settings = FloorSettings()
    engine.submit(ask(2, supersedes=old.req)).result(10) if is_superseded else old.cancel()
    outcome = old.result(10).outcome
    settle(engine)
    again = engine.submit(ask(1)).result(10)
    failed = [event for event in recorded.of(SwapInFailed) if event.req == old.req]
    parts = (failed[0].queue_ns, failed[0].alloc_ns, failed[0].submit_ns, failed[0].io_ns, failed[0].copy_ns, failed[0].sync_ns)
    queued_ns = next(event.t_ns for event in recorded.of(SwapInQueued) if event.op == failed[0].op)

    assert Outcome.CANCELLED is outcome
    assert {SwapInFailReason.CANCELLED} == {event.reason for event in failed}
    assert failed[0].t_ns - queued_ns == sum(part or 0 for part in parts)
    assert {tier: 4} == again.restored
    assert () == fold(recorded.events).violations


def test_who_comes_to_want_a_load_that_is_being_called_off_gets_it(data_dir: Path, start_engine: StartEngine) -> None:
    """The second request for a prefix finds a load that stops, or has just been wanted again: it is served either way."""
    engine = start_engine(tiny(data_dir, host=TierSettings(slots=40, floor=FloorSettings(read_latency_ns=20 * MS))))
    stored(engine, 1)
    for _ in range(5):
        first = engine.submit(ask(1))
        while not engine.statistics().queues[Tier.HOST].in_service:
            pass
        first.cancel()
        second = engine.submit(ask(1)).result(10)
        settle(engine)
        engine.ask(partial(engine.maintenance.clear, Tier.GPU))

        assert {Tier.HOST: 4} == second.restored or BLOCK == second.computed_tokens


def test_a_superseded_request_computes_no_further(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """It ends with the step that was running; none of its chunks is planned after that."""
    engine = start_engine(tiny(data_dir, step=StepSettings(budget_tokens=64, floor_ns=10 * MS)))
    old = engine.submit(ask(1, 20 * BLOCK))
    while not recorded.of(PrefillChunk):
        pass
    new = engine.submit(ask(2, supersedes=old.req))
    outcomes = [handle.result(10).outcome for handle in (old, new)]
    called_off = recorded.of(RequestCancelled)[0]
    late = [event for event in recorded.of(PrefillChunk) if event.req == old.req and event.t_ns > called_off.t_ns]

    assert [Outcome.CANCELLED, Outcome.FINISHED] == outcomes
    assert (old.req, CancelReason.SUPERSEDED) == (called_off.req, called_off.reason)
    assert [] == late
    assert old.result(1).computed_tokens < 20 * BLOCK
