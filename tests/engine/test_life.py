"""A request's life, from its arrival to its end, as an observer hears it."""

import itertools
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineClosedError, SettingsError
from kvtrail_engine.request import Outcome, Retention
from kvtrail_engine.settings import FloorSettings, StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BlockCreated,
    CapacitySampled,
    CopyWaited,
    CounterSampled,
    Evicted,
    ManifestDeclared,
    PrefillChunk,
    RequestAdmitted,
    RequestFirstToken,
    RequestRejected,
    RequestWaiting,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
    SwapOutWritten,
    TierDeclared,
)
from kvtrail_schema.reasons import PrefillReason, RejectReason, WaitReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import BLOCK, ask, names, tiny, told

MS = 1_000_000


def test_nothing_is_told_while_nothing_happens(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """An idle engine says what it is, samples its tiers, and is silent otherwise."""
    start_engine(tiny(data_dir)).close()
    others = [event for event in recorded.events if not isinstance(event, CapacitySampled | CounterSampled)]

    assert names(others) == ["manifest_declared", "tier_declared", "tier_declared", "tier_declared"]
    assert '"device":"cpu-emulated"' in recorded.of(ManifestDeclared)[0].text
    assert [event.tier for event in recorded.of(TierDeclared)] == [Tier.GPU, Tier.HOST, Tier.NVME]


def test_the_places_of_a_guest_are_declared(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """A tier is declared as large as all that may lie there, a guest's blocks among it: nothing that is told has no room."""
    settings = tiny(data_dir, guest_slots=7)
    start_engine(settings).close()
    places = {event.tier: event.capacity_bytes // settings.block_bytes for event in recorded.of(TierDeclared)}

    assert (settings.host.slots + 7, settings.nvme.slots + 7) == (places[Tier.HOST], places[Tier.NVME])
    assert settings.gpu.slots == places[Tier.GPU]


def test_a_new_prompt_is_told_from_arrival_to_end(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Each fact of a request's life is told once, and in order."""
    result = start_engine(tiny(data_dir)).submit(ask(1, tokens=40)).result(10)
    kinds = names(told(recorded.events, result.req))

    assert Outcome.FINISHED is result.outcome
    assert len(result.output) == 3
    assert kinds[:9] == [
        "request_arrived",
        "request_waiting",
        "lookup_finished",
        "prefix_miss",
        "request_admitted",
        "prefill_chunk",
        "block_created",
        "block_pinned",
        "request_first_token",
    ]
    assert {"decode_joined", "decode_left", "attention_read", "request_finished", "swap_out_queued"} <= set(kinds)


def test_the_second_time_a_prefix_is_a_hit(data_dir: Path, start_engine: StartEngine) -> None:
    """A prefix on the gpu is not computed again, and the answer is the same."""
    engine = start_engine(tiny(data_dir))
    first = engine.submit(ask(1)).result(10)
    second = engine.submit(ask(1)).result(10)

    assert first.output == second.output
    assert (first.computed_tokens, second.computed_tokens) == (5 * BLOCK, BLOCK)


def test_blocks_go_down_and_come_back(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """With more prompts than the gpu holds, prefixes are restored from both slower tiers, with the same answers."""
    engine = start_engine(tiny(data_dir))
    rounds = [[engine.submit(ask(number, 9 * BLOCK)).result(10) for number in range(12)] for _ in range(2)]

    assert [r.output for r in rounds[0]] == [r.output for r in rounds[1]]
    assert {Tier.HOST, Tier.NVME} == {tier for r in rounds[1] for tier, blocks in r.restored.items() if blocks}
    assert recorded.of(Evicted)
    assert recorded.of(SwapOutWritten)


def test_parts_of_every_op_add_up(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Queued + the six parts = the end, exactly, and they stand on one row of an op."""
    engine = start_engine(tiny(data_dir))
    for number in [*range(10), *range(10)]:
        engine.submit(ask(number, 9 * BLOCK)).result(10)
    engine.close()
    queued = {event.op: event.t_ns for event in recorded.of(SwapInQueued)}
    first_rows = [event for event in recorded.of(SwapInLoaded) if event.queue_ns is not None]

    assert sorted(queued) == sorted(event.op for event in first_rows)
    for event in first_rows:
        parts = (event.queue_ns, event.alloc_ns, event.submit_ns, event.io_ns, event.copy_ns, event.sync_ns)
        assert event.t_ns == queued[event.op] + sum(part or 0 for part in parts)


def test_a_restore_explains_its_request(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """The wait for a restore is told as such, and covers the op from its queue to its end."""
    slow = FloorSettings(read_latency_ns=30 * MS)
    tiers = {"host": TierSettings(slots=40, floor=slow), "nvme": TierSettings(slots=256, floor=slow)}
    engine = start_engine(tiny(data_dir, **tiers))
    engine.submit(ask(1)).result(10)
    for number in range(2, 8):
        engine.submit(ask(number, 8 * BLOCK)).result(10)
    result = engine.submit(ask(1)).result(10)
    mine = told(recorded.events, result.req)
    waits = [(event.reason, event.t_ns) for event in mine if isinstance(event, RequestWaiting)]
    since_ns = dict(waits)[WaitReason.KV_LOAD]
    copy_waited = next(event for event in mine if isinstance(event, CopyWaited))
    queued_ns = min(event.t_ns for event in mine if isinstance(event, SwapInQueued))

    assert [reason for reason, _ in waits] == [WaitReason.BUDGET, WaitReason.KV_LOAD, WaitReason.BUDGET]
    assert since_ns == queued_ns == copy_waited.t_ns - copy_waited.wait_ns
    assert copy_waited.wait_ns >= 30 * MS
    assert result.restored


def test_steps_cover_every_chunk(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """Chunks, first tokens and step ends stand at the same moment, so that no time between them is lost."""
    engine = start_engine(tiny(data_dir, step=StepSettings(budget_tokens=64, floor_ns=2 * MS)))
    engine.submit(ask(1, 200)).result(10)
    engine.close()
    started = {event.step: event.t_ns for event in recorded.of(StepStarted)}
    finished = {event.step: event.t_ns for event in recorded.of(StepFinished)}

    assert started.keys() == finished.keys()
    assert all(finished[step] - started[step] >= 2 * MS for step in started)
    assert all(finished[chunk.step] == chunk.t_ns for chunk in recorded.of(PrefillChunk))
    assert {event.t_ns for event in recorded.of(RequestFirstToken)} <= set(finished.values())
    assert {event.t_ns for event in recorded.of(RequestAdmitted)} <= set(started.values())
    assert [chunk.tokens for chunk in recorded.of(PrefillChunk)] == [64, 64, 64, 8]


def test_blocks_name_their_parents(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """A prompt's blocks form a chain that begins without a parent."""
    start_engine(tiny(data_dir)).submit(ask(1)).result(10)
    created = recorded.of(BlockCreated)

    assert [None, *(event.block for event in created[:-1])] == [event.parent for event in created]
    assert [event.token_start for event in created] == [0, 32, 64, 96, 128]


def test_what_was_evicted_everywhere_is_computed_again_and_says_so(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """A chunk names why it is computed again."""
    engine = start_engine(tiny(data_dir))
    engine.submit(ask(1, retention=Retention.NONE)).result(10)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    result = engine.submit(ask(1)).result(10)
    mine = [event for event in told(recorded.events, result.req) if isinstance(event, PrefillChunk)]

    assert [(event.reason, event.tokens) for event in mine] == [(PrefillReason.EVICTED, 128), (PrefillReason.NEW, 32)]


def test_too_large_a_request_is_rejected(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """What can never fit is refused at once, not kept waiting."""
    result = start_engine(tiny(data_dir)).submit(ask(1, 41 * BLOCK)).result(10)

    assert Outcome.REJECTED is result.outcome
    assert [event.reason for event in recorded.of(RequestRejected)] == [RejectReason.LIMIT]


def test_a_request_without_a_place_waits_for_the_limit(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Where all places are taken, those behind say so."""
    engine = start_engine(tiny(data_dir, step=StepSettings(max_sequences=1, floor_ns=5 * MS)))
    for handle in [engine.submit(ask(number)) for number in range(3)]:
        assert Outcome.FINISHED is handle.result(10).outcome
    reasons = {event.reason for event in recorded.of(RequestWaiting)}

    assert WaitReason.LIMIT in reasons


def test_a_request_without_room_waits_for_capacity(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Active blocks are never evicted: who needs their room waits for it, and gets it."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=3 * MS)))
    for handle in [engine.submit(ask(number, 25 * BLOCK)) for number in range(3)]:
        assert Outcome.FINISHED is handle.result(10).outcome

    assert WaitReason.CAPACITY in {event.reason for event in recorded.of(RequestWaiting)}


def test_a_cancelled_request_gives_everything_up(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """Calling off ends the request soon, and its room is free again."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=20 * MS)))
    handle = engine.submit(ask(1, output_tokens=100))
    handle.cancel()
    result = handle.result(10)
    pool = engine.statistics().pools[Tier.GPU]

    assert Outcome.CANCELLED is result.outcome
    assert pool.slots == pool.free + pool.evictable
    assert "request_cancelled" in names(told(recorded.events, result.req))


def test_closing_answers_everybody(data_dir: Path, start_engine: StartEngine) -> None:
    """No sender waits for ever for an engine that is gone, and nobody can submit to it."""
    engine = start_engine(tiny(data_dir, step=StepSettings(floor_ns=50 * MS)))
    handles = [engine.submit(ask(number, output_tokens=50)) for number in range(4)]
    engine.close()

    assert {Outcome.CANCELLED} == {handle.result(1).outcome for handle in handles}
    with pytest.raises(EngineClosedError, match="r9"):
        engine.submit(ask(9))


def test_an_engine_without_observers_runs(data_dir: Path) -> None:
    """Nobody has to watch."""
    with Engine(tiny(data_dir)) as engine:
        assert Outcome.FINISHED is engine.submit(ask(1)).result(10).outcome


def test_settings_that_cannot_work_say_so(data_dir: Path) -> None:
    """Every wrong setting is named, before anything is made."""
    with pytest.raises(SettingsError, match="budget_tokens must hold at least one block"):
        Engine(tiny(data_dir, step=StepSettings(budget_tokens=8)))
    with pytest.raises(SettingsError, match="prompt_tokens must hold at least one block"):
        Engine(tiny(data_dir, step=StepSettings(prompt_tokens=8)))


def test_sequence_numbers_of_times_never_run_backwards_within_a_request(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """The states of a request are told in the order in which they became true."""
    engine = start_engine(tiny(data_dir))
    results = [handle.result(10) for handle in [engine.submit(ask(number % 5)) for number in range(20)]]
    states = (RequestWaiting, RequestAdmitted, RequestFirstToken)
    for result in results:
        times = [event.t_ns for event in told(recorded.events, result.req) if isinstance(event, states)]

        assert all(before <= after for before, after in itertools.pairwise(times))
