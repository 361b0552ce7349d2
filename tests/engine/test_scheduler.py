"""The plan of a step: budget, order, and who waits for what."""

from kvtrail_engine.namespaces import Identity
from kvtrail_engine.request import RequestHandle, RequestSpec
from kvtrail_engine.scheduler import Scheduler, StepPlan
from kvtrail_engine.sequence import Phase, Sequence
from kvtrail_engine.settings import StepSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.events import RequestWaiting
from kvtrail_schema.identity import Namespace, NamespaceId, RequestId
from kvtrail_schema.reasons import WaitReason

from tests.engine.engines import BLOCK, prompt


def sequence(number: int, tokens: int, phase: Phase = Phase.PREFILL) -> Sequence:
    """A request that has its place, with all of its prompt to compute."""
    spec = RequestSpec(f"r{number}", prompt(number, tokens), 2)
    identity = Identity(NamespaceId(1), Namespace(tenant="a"), None)
    made = Sequence(RequestHandle(RequestId(number), spec, lambda _: None), identity, 0, (), BLOCK, phase)
    made.todo.extend(range(made.prompt_blocks))
    return made


def scheduler(budget_tokens: int, *sequences: Sequence, prompt_tokens: int | None = None) -> Scheduler:
    """A scheduler that holds these."""
    settings = StepSettings(budget_tokens=budget_tokens, prompt_tokens=prompt_tokens, max_sequences=4)
    made = Scheduler(settings, CollectingEmitter().as_emitter())
    for each in sequences:
        made.enter(each)
    return made


def tokens_by_request(plan: StepPlan | None) -> dict[int, int]:
    """Prompt tokens of each request in a plan."""
    tokens: dict[int, int] = {}
    for chunk in plan.chunks if plan else ():
        tokens[chunk.sequence.handle.req] = tokens.get(chunk.sequence.handle.req, 0) + chunk.tokens
    return tokens


def test_nothing_to_do_is_no_step() -> None:
    """An idle engine makes no steps."""
    assert scheduler(256).plan() is None


def test_a_long_prompt_takes_the_whole_budget() -> None:
    """First come, first served: those behind a long prompt wait for budget."""
    plan = scheduler(4 * BLOCK, sequence(1, 100 * BLOCK), sequence(2, BLOCK)).plan()

    assert tokens_by_request(plan) == {1: 4 * BLOCK}


def test_with_a_most_for_one_prompt_others_compute_beside_a_long_one() -> None:
    """A long prompt leaves what it may not take to those behind it, and what they leave stays empty."""
    plan = scheduler(
        8 * BLOCK, sequence(1, 100 * BLOCK), sequence(2, BLOCK), sequence(3, 3 * BLOCK), prompt_tokens=2 * BLOCK
    ).plan()

    assert tokens_by_request(plan) == {1: 2 * BLOCK, 2: BLOCK, 3: 2 * BLOCK}


def test_the_order_is_that_of_arrival() -> None:
    """Whoever became ready first, the earlier request is computed first."""
    plan = scheduler(4 * BLOCK, sequence(2, 2 * BLOCK), sequence(1, 3 * BLOCK)).plan()

    assert tokens_by_request(plan) == {1: 3 * BLOCK, 2: BLOCK}


def test_decoding_comes_out_of_the_budget_first() -> None:
    """Everybody who decodes gets a token; what is left goes to prompts, in whole chunks."""
    plan = scheduler(2 * BLOCK, sequence(1, BLOCK, Phase.DECODE), sequence(2, 3 * BLOCK)).plan()

    assert plan is not None
    assert len(plan.decodes) == 1
    assert tokens_by_request(plan) == {2: BLOCK}


def test_the_last_chunk_of_a_prompt_may_be_short() -> None:
    """Chunks lie on the block grid, whatever the prompt's length."""
    plan = scheduler(256, sequence(1, BLOCK + 5)).plan()

    assert plan is not None
    assert [chunk.tokens for chunk in plan.chunks] == [BLOCK, 5]


def test_a_reason_to_wait_is_told_once() -> None:
    """One event at each change, none while it stays."""
    emitter = CollectingEmitter()
    made, waiting = Scheduler(StepSettings(), emitter.as_emitter()), sequence(1, BLOCK, Phase.WAITING)
    for reason in (WaitReason.BUDGET, WaitReason.LIMIT, WaitReason.LIMIT, WaitReason.BUDGET):
        made.wait(waiting, reason, 5)

    assert [e.reason for e in emitter.of(RequestWaiting)] == [WaitReason.BUDGET, WaitReason.LIMIT, WaitReason.BUDGET]


def test_places_are_limited() -> None:
    """Loading, computing and decoding requests all hold a place."""
    made = scheduler(256, sequence(1, 8, Phase.LOADING), sequence(2, 8), sequence(3, 8, Phase.DECODE))

    assert made.has_place
    made.enter(sequence(4, 8))
    assert not made.has_place
