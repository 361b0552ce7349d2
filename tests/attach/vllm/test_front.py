"""Requests as vLLM's API server tells them at their end, for engines without our connector."""

from types import SimpleNamespace
from typing import Any

from kvtrail_agent.attach.vllm_front import FrontWatch
from kvtrail_collector.facts_build import recording_of_events
from kvtrail_collector.ledger import ledger_of
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.events import CounterSampled, RequestArrived, RequestCancelled, RequestFinished

S = 1_000_000_000
KEY = b"0123456789abcdef"


def finished(name: str = "cmpl-1", reason: str = "STOP", **told: Any) -> Any:
    """Statistics of a finished request: 1 s in the queue, 2 s of prefill, 3 s of decoding."""
    defaults = {"e2e_latency": 6.0, "inference_time": 5.0, "prefill_time": 2.0, "decode_time": 3.0, "queued_time": 1.0}
    counts = {"num_prompt_tokens": 100, "num_cached_tokens": 40, "num_generation_tokens": 7}
    return SimpleNamespace(request_id=name, finish_reason=SimpleNamespace(name=reason), **(defaults | counts | told))


def watch(*, tells_requests: bool = True) -> tuple[FrontWatch, CollectingEmitter]:
    """A watch whose events stay in memory."""
    emitter = CollectingEmitter()
    return FrontWatch(emitter.as_emitter(), KEY, tells_requests=tells_requests), emitter


def iteration(*requests: Any) -> Any:
    """Statistics of one iteration."""
    return SimpleNamespace(finished_requests=list(requests))


def test_a_finished_request_has_the_ledger_that_vllm_measured() -> None:
    """Queue and prefill are as long as vLLM says, and add up to the time to the first token."""
    front, emitter = watch()
    front.record(None, iteration(finished()), 100 * S)
    ledger = ledger_of(recording_of_events(emitter.events).requests[0])

    assert 3 * S == ledger.ns
    assert [("new_prefill", 2 * S)] == [(part.component, part.ns) for part in ledger.parts if "prefill" in part.component]
    assert [(7, 100 * S)] == [(one.tokens, one.t_ns) for one in emitter.of(RequestFinished)]


def test_an_aborted_request_is_cancelled() -> None:
    """One that never ran has no admission, and ends as called off."""
    front, emitter = watch()
    front.record(None, iteration(finished(reason="ABORT", inference_time=0.0, prefill_time=0.0)), 100 * S)

    assert ["RequestArrived", "RequestCancelled"] == [type(event).__name__ for event in emitter.events]


def test_requests_are_left_to_the_connector_where_there_is_one() -> None:
    """Nobody is told of twice."""
    front, emitter = watch(tells_requests=False)
    front.record(None, iteration(finished()), 100 * S)

    assert [] == emitter.of(RequestArrived)
    assert [] == emitter.of(RequestCancelled)


def test_counters_are_sampled_each_second_and_add_up() -> None:
    """What vLLM hands over in pieces is told as a total, once a second."""
    front, emitter = watch()
    stats = SimpleNamespace(
        num_running_reqs=2, num_waiting_reqs=1, kv_cache_usage=0.5, prefix_cache_stats=SimpleNamespace(queries=10, hits=4)
    )
    for at in (10 * S, 10 * S + 1, 12 * S):
        front.record(stats, None, at)
    hits = [(one.t_ns, one.value) for one in emitter.of(CounterSampled) if one.text == "vllm:prefix_cache_hits"]

    assert [(10 * S, 4.0), (12 * S, 12.0)] == hits
