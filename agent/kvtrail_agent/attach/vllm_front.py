"""What vLLM's API server says of finished requests, as events: for engines without our connector.

vLLM tells a stat logger of each finished request how long it was queued, prefilled and decoded, once it has ended. So four
events a request are told then, at the times that these durations give. Pure over vLLM's objects; runs on the server's event
loop, some 10 µs a finished request, and blocks nowhere.
"""

from typing import Any, Final

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.identity import RequestId, StepId, keyed_id
from kvtrail_schema.reasons import CancelReason, FinishReason, PrefillReason

_S_NS: Final = 1_000_000_000
_SAMPLE_NS: Final = _S_NS


class FrontWatch:
    """The events of one engine as its API server sees it. `tells_requests`: nobody else does."""

    def __init__(self, emit: Emitter, key: bytes, *, tells_requests: bool) -> None:
        self._emit = emit
        self._key = key
        self._tells_requests = tells_requests
        self._steps = 0
        self._sampled_ns = 0
        self._totals: dict[str, float] = {}

    def record(self, scheduler_stats: Any, iteration_stats: Any, now_ns: int) -> None:
        """One hand-over of statistics; either may be missing."""
        if scheduler_stats is not None:
            self._add(scheduler_stats)
        if iteration_stats is not None and self._tells_requests:
            for finished in iteration_stats.finished_requests:
                self._finished(finished, now_ns)
        if now_ns - self._sampled_ns >= _SAMPLE_NS:
            self._sampled_ns = now_ns
            for name, value in self._totals.items():
                self._emit.counter_sampled(name, value, t_ns=now_ns)

    def _add(self, stats: Any) -> None:
        """Counters of the scheduler; vLLM hands over what was added since the last time."""
        self._totals["vllm:num_requests_running"] = float(stats.num_running_reqs)
        self._totals["vllm:num_requests_waiting"] = float(stats.num_waiting_reqs)
        self._totals["vllm:kv_cache_usage_perc"] = float(stats.kv_cache_usage)
        for name, found in (
            ("vllm:prefix_cache", stats.prefix_cache_stats),
            ("vllm:external_prefix_cache", getattr(stats, "connector_prefix_cache_stats", None)),
        ):
            if found is not None:
                for member in ("queries", "hits"):
                    self._totals[f"{name}_{member}"] = self._totals.get(f"{name}_{member}", 0.0) + float(getattr(found, member))

    def _finished(self, finished: Any, now_ns: int) -> None:
        """One request, from its durations. The step is the request's own: from its scheduling to its first token."""
        name = str(finished.request_id or "")
        req = RequestId(keyed_id(self._key, b"request", name.encode()))
        arrived_ns = now_ns - round(finished.e2e_latency * _S_NS)
        admitted_ns = max(now_ns - round(finished.inference_time * _S_NS), arrived_ns)
        first_ns = min(admitted_ns + round(finished.prefill_time * _S_NS), now_ns)
        self._emit.request_arrived(req, int(finished.num_prompt_tokens), text=name, t_ns=arrived_ns)
        if finished.inference_time > 0:
            self._steps += 1
            step, tokens = StepId(self._steps), max(int(finished.num_prompt_tokens) - int(finished.num_cached_tokens), 1)
            self._emit.request_admitted(req, step, t_ns=admitted_ns)
            self._emit.step_started(step, t_ns=admitted_ns)
            self._emit.step_finished(step, tokens, t_ns=first_ns)
            self._emit.prefill_chunk(req, step, tokens, PrefillReason.NEW, t_ns=first_ns)
            self._emit.request_first_token(req, step, t_ns=first_ns)
        self._ended(req, finished, now_ns)

    def _ended(self, req: RequestId, finished: Any, now_ns: int) -> None:
        """How it ended."""
        reason = str(getattr(finished.finish_reason, "name", finished.finish_reason)).upper()
        if reason in {"STOP", "LENGTH", "REPETITION"}:
            told = FinishReason.LENGTH if reason == "LENGTH" else FinishReason.STOP
            self._emit.request_finished(req, int(finished.num_generation_tokens), told, t_ns=now_ns)
        else:
            self._emit.request_cancelled(req, CancelReason.CLIENT, t_ns=now_ns)
