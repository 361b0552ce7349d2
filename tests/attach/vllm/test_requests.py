"""What becomes of requests that vLLM's scheduler tells a connector of: phases, steps, tokens and reasons."""

from kvtrail_collector.facts_build import facts_of
from kvtrail_collector.ledger import ledger_of
from kvtrail_schema.events import (
    DecodeJoined,
    DecodeLeft,
    Error,
    NamespaceDeclared,
    PrefillChunk,
    RequestAdmitted,
    RequestArrived,
    RequestCancelled,
    RequestFinished,
    RequestFirstToken,
    RequestPreempted,
    RequestRejected,
    RequestResumed,
    RequestWaiting,
    StepFinished,
    StepStarted,
    TokensEmitted,
)
from kvtrail_schema.reasons import FinishReason, PrefillReason, WaitReason

from tests.attach.vllm.things import MS, Request, Scheduler


def parts(scheduler: Scheduler, request: Request) -> dict[str, int]:
    """The ledger of a request, in milliseconds, by component."""
    facts = facts_of(scheduler.emitter.events, scheduler.watch._names.request(request.request_id))

    assert facts is not None

    found: dict[str, int] = {}
    for part in ledger_of(facts).parts:
        found[part.component] = found.get(part.component, 0) + part.ns // MS
    return {name: ms for name, ms in found.items() if ms}


def prefilled(scheduler: Scheduler, request: Request, at: int = 10) -> None:
    """A request that came, was prefilled in one step of ten milliseconds, and has its first token."""
    scheduler.comes(request, at - 10)
    scheduler.looks_up(request, at - 9)
    scheduler.gives(request, at - 9)
    tokens = request.num_prompt_tokens
    scheduler.builds(at, new={request.request_id: 0}, tokens={request.request_id: tokens})
    request.num_output_tokens = 1
    scheduler.ends_step(at + 10)


def test_nothing_is_told_while_nothing_happens() -> None:
    """Steps without tokens, which vLLM makes while it waits for transfers, leave no trace."""
    scheduler = Scheduler()
    scheduler.builds(1)
    scheduler.ends_step(2)

    assert [] == scheduler.emitter.events


def test_a_request_has_its_phases() -> None:
    """Arrival, admission, prefill, first token, tokens and end stand at their times; the ledger adds up."""
    scheduler, request = Scheduler(), Request("cmpl-1", 8)
    prefilled(scheduler, request)
    scheduler.builds(21, again={"cmpl-1": 8}, tokens={"cmpl-1": 1})
    request.num_output_tokens = 2
    scheduler.ends(request, 30, "FINISHED_LENGTH_CAPPED")
    scheduler.ends_step(31)
    emitter = scheduler.emitter

    assert [("cmpl-1", 8, 0)] == [(one.text, one.tokens, one.t_ns) for one in emitter.of(RequestArrived)]
    assert [10 * MS] == [one.t_ns for one in emitter.of(RequestAdmitted)]
    assert [20 * MS] == [one.t_ns for one in emitter.of(RequestFirstToken)]
    assert [(8, PrefillReason.NEW, 0)] == [(one.tokens, one.reason, one.token_start) for one in emitter.of(PrefillChunk)]
    assert [(8, 8, 0), (1, 0, 1)] == [(s.tokens, s.prefill_tokens, s.decode_tokens) for s in emitter.of(StepFinished)]
    assert [(2, FinishReason.LENGTH)] == [(one.tokens, one.reason) for one in emitter.of(RequestFinished)]
    assert 1 == len(emitter.of(DecodeJoined)) == len(emitter.of(DecodeLeft))
    assert [] == emitter.of(TokensEmitted)
    assert {"lookup": 1, "sched_wait": 9, "new_prefill": 10} == {
        name.partition(".")[0]: ms for name, ms in parts(scheduler, request).items()
    }


def test_a_long_prompt_is_prefilled_in_chunks() -> None:
    """Each chunk stands with its step; the first token comes with the last of them, not before."""
    scheduler, request = Scheduler(), Request("a", 12)
    scheduler.comes(request, 1)
    scheduler.looks_up(request, 2)
    scheduler.gives(request, 2)
    scheduler.builds(3, new={"a": 0}, tokens={"a": 8})
    scheduler.ends_step(10)
    scheduler.builds(11, again={"a": 8}, tokens={"a": 4})
    request.num_output_tokens = 1
    scheduler.ends_step(20)

    assert [(0, 8), (8, 4)] == [(one.token_start, one.tokens) for one in scheduler.emitter.of(PrefillChunk)]
    assert [20 * MS] == [one.t_ns for one in scheduler.emitter.of(RequestFirstToken)]


def test_a_step_that_is_built_early_starts_when_the_one_before_ends() -> None:
    """With asynchronous scheduling two steps are in flight; the second computes from the end of the first on."""
    scheduler, request = Scheduler(), Request("a", 4)
    scheduler.comes(request, 1)
    scheduler.builds(2, new={"a": 0}, tokens={"a": 4})
    scheduler.builds(3, again={"a": 4}, tokens={"a": 1})
    request.num_output_tokens = 1
    scheduler.ends_step(10)
    request.num_output_tokens = 2
    scheduler.ends_step(20)

    assert [2 * MS, 10 * MS] == [one.t_ns for one in scheduler.emitter.of(StepStarted)]
    assert [10 * MS, 20 * MS] == [one.t_ns for one in scheduler.emitter.of(StepFinished)]
    assert [] == scheduler.emitter.of(TokensEmitted)


def test_other_than_one_token_a_step_is_said() -> None:
    """Speculation gives more than one; a request that a step leaves out gets none."""
    scheduler, fast, slow = Scheduler(), Request("fast", 4), Request("slow", 4)
    prefilled(scheduler, fast)
    prefilled(scheduler, slow, at=40)
    scheduler.builds(61, again={"fast": 5}, tokens={"fast": 3})
    fast.num_output_tokens += 3
    scheduler.ends_step(70)
    told = [(one.step, one.tokens) for one in scheduler.emitter.of(TokensEmitted)]

    assert [(2, 0), (3, 3), (3, 0)] == told


def test_who_waits_has_a_reason() -> None:
    """Room, limit and budget are told apart by what the scheduler did, and each is said once."""
    scheduler = Scheduler(most_running=1, most_tokens=64)
    first, second, third = Request("1", 8), Request("2", 8), Request("3", 8)
    prefilled(scheduler, first)
    scheduler.comes(second, 20)
    scheduler.comes(third, 20)
    for at in (21, 23):
        scheduler.builds(at, again={"1": 8}, tokens={"1": 1})
        first.num_output_tokens += 1
        scheduler.ends_step(at + 1)

    assert [WaitReason.LIMIT, WaitReason.LIMIT] == [one.reason for one in scheduler.emitter.of(RequestWaiting)]


def test_who_is_looked_up_and_given_nothing_waits_for_room() -> None:
    """The first in the queue that finds no blocks waits for capacity, and those behind it do, too."""
    scheduler, first, second = Scheduler(), Request("1", 8), Request("2", 8)
    scheduler.comes(first, 1)
    scheduler.comes(second, 1)
    scheduler.looks_up(first, 2)
    scheduler.builds(3)

    assert [WaitReason.CAPACITY] * 2 == [one.reason for one in scheduler.emitter.of(RequestWaiting)]


def test_a_full_step_is_a_reason() -> None:
    """Where the tokens of a step are all given, those left out wait for the budget."""
    scheduler, first, second = Scheduler(most_tokens=8), Request("1", 8), Request("2", 8)
    scheduler.comes(first, 1)
    scheduler.comes(second, 1)
    scheduler.looks_up(first, 2)
    scheduler.gives(first, 2)
    scheduler.builds(3, new={"1": 0}, tokens={"1": 8})

    assert [WaitReason.BUDGET] == [one.reason for one in scheduler.emitter.of(RequestWaiting)]


def test_a_preempted_request_comes_back() -> None:
    """It loses its place, waits, resumes, and what it computes again is said to be for that."""
    scheduler, request = Scheduler(), Request("a", 8)
    prefilled(scheduler, request)
    scheduler.builds(21, preempted={"a"})
    scheduler.ends_step(22)
    scheduler.builds(31, again={"a": 0}, tokens={"a": 9})
    request.num_output_tokens = 2
    scheduler.ends_step(40)
    emitter = scheduler.emitter

    assert 1 == len(emitter.of(RequestPreempted)) == len(emitter.of(RequestResumed)) == len(emitter.of(RequestFirstToken))
    assert [PrefillReason.NEW, PrefillReason.PREEMPTED] == [one.reason for one in emitter.of(PrefillChunk)]
    assert 2 == len(emitter.of(DecodeJoined))


def test_each_end_is_told_as_what_it_is() -> None:
    """Stopped, aborted, refused and failed requests end differently, and nothing is kept of them."""
    scheduler = Scheduler()
    requests = {how: Request(how, 4) for how in ("FINISHED_STOPPED", "FINISHED_ABORTED", "FINISHED_IGNORED", "FINISHED_ERROR")}
    for how, request in requests.items():
        scheduler.comes(request, 1)
        scheduler.ends(request, 2, how)
    emitter = scheduler.emitter

    assert 1 == len(emitter.of(RequestFinished)) == len(emitter.of(RequestRejected)) == len(emitter.of(Error))
    assert 2 == len(emitter.of(RequestCancelled))
    assert {} == scheduler.watch.requests


def test_tenants_are_hashed_and_declared_once() -> None:
    """Requests of one cache salt share a namespace, whose declaration does not name it; without one it is another."""
    scheduler = Scheduler()
    for number, salt in enumerate(["acme", "acme", None]):
        scheduler.comes(Request(str(number), 4, salt=salt), number)
    arrived, declared = scheduler.emitter.of(RequestArrived), scheduler.emitter.of(NamespaceDeclared)

    assert arrived[0].ns == arrived[1].ns != arrived[2].ns
    assert [arrived[0].ns, arrived[2].ns] == [one.ns for one in declared]
    assert not any("acme" in one.text for one in declared)


def test_a_trace_id_goes_with_its_request() -> None:
    """The W3C trace id of a request stands on its arrival; what is none is left out."""
    scheduler, traced, odd = Scheduler(), Request("1", 4), Request("2", 4)
    traced.trace_headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    odd.trace_headers = {"traceparent": "nonsense"}
    scheduler.comes(traced, 1)
    scheduler.comes(odd, 1)

    assert ["0af7651916cd43dd8448eb211c80319c", None] == [one.trace_id for one in scheduler.emitter.of(RequestArrived)]
