"""What room on the gpu costs others: told with each decision, and the reason why one block leaves and not another."""

from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle
from kvtrail_engine.request import Retention, RetentionRule
from kvtrail_engine.settings import StepSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Evicted, RestoreChosen
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import EvictReason

from tests.engine.engines import BLOCK, ask, tiny

US = 1_000
ONLY_HERE, STORED, COMES, PRECIOUS = 1, 2, 3, 4
TOKENS = 4 * BLOCK
BLOCK_NS = 100 * US * BLOCK
"""What one block costs to compute."""


def story(data_dir: Path, recorded: CollectingEmitter, lookahead: int) -> tuple[set[int], RestoreChosen, int]:
    """Of two prompts the one used longest ago lies on the gpu alone, the other on host too; then a third needs room.

    Whose blocks left for it, the decision, and how much of the first prompt had to be computed when it came again.
    """
    step = StepSettings(floor_prefill_token_ns=100 * US)
    settings = tiny(data_dir, gpu=TierSettings(slots=14), host_low_slots=0, step=step, keep_lookahead=lookahead)
    with Engine(settings, [recorded.as_emitter()]) as engine:
        engine.submit(ask(COMES, TOKENS, 1)).result(10)
        settle(engine)
        engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
        engine.submit(ask(ONLY_HERE, TOKENS, 1, retention=Retention.NONE)).result(10)
        engine.submit(ask(STORED, TOKENS, 1)).result(10)
        settle(engine)
        mark = len(recorded.events)
        engine.submit(ask(COMES, TOKENS, 4 * BLOCK)).result(10)
        owners: dict[BlockId, int] = {
            block.id: number for number in (ONLY_HERE, STORED) for block in engine.blocks_of(ask(number, TOKENS))
        }
        again = engine.submit(ask(ONLY_HERE, TOKENS, 1)).result(10)
    told = recorded.events[mark:]
    decision = next(event for event in told if isinstance(event, RestoreChosen))
    gone = {owners[event.block] for event in told if isinstance(event, Evicted) and event.cause == decision.id}
    return gone, decision, again.computed_tokens


@pytest.mark.parametrize(("lookahead", "leaves"), [(0, ONLY_HERE), (8, STORED)])
def test_what_it_costs_to_have_a_block_again_decides_who_leaves(
    data_dir: Path, recorded: CollectingEmitter, lookahead: int, leaves: int
) -> None:
    """By age alone the prompt goes that must be computed again; by cost the one goes that host can give back."""
    gone, decision, computed = story(data_dir, recorded, lookahead)

    assert {leaves} == gone
    assert (BLOCK if leaves == STORED else TOKENS) == computed
    assert decision.restore_estimate_ns is not None
    assert decision.recompute_estimate_ns is not None
    assert decision.keep_estimate_ns is not None
    assert decision.recompute_estimate_ns >= 3 * BLOCK_NS
    assert (2 * BLOCK_NS <= decision.keep_estimate_ns) is (leaves == ONLY_HERE)


def test_priority_comes_before_cost(data_dir: Path, recorded: CollectingEmitter) -> None:
    """A block that is kept dearly stays, however cheap it is to have again, while one of lower priority can go."""
    dear, cheap = (RetentionRule(90),), (RetentionRule(10),)
    settings = tiny(data_dir, gpu=TierSettings(slots=10), host_low_slots=0)
    with Engine(settings, [recorded.as_emitter()]) as engine:
        engine.submit(ask(PRECIOUS, TOKENS, 1, retention_rules=dear)).result(10)
        engine.submit(ask(ONLY_HERE, TOKENS, 1, retention_rules=cheap, retention=Retention.NONE)).result(10)
        settle(engine)
        engine.submit(ask(COMES, TOKENS, 1)).result(10)
        precious = {block.id for block in engine.blocks_of(ask(PRECIOUS, TOKENS))}
    gone = {event.block for event in recorded.of(Evicted) if event.reason is EvictReason.CAPACITY}

    assert gone
    assert not gone & precious
