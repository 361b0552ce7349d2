"""Queues run anew: workers that serve in order of arrival, and steps that give prompts their budget."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
from kvtrail_collector.facts_rows import IntArray

from kvtrail_cli.drill.generated.recorded import BLOCK_TOKENS


def served(queued_ns: IntArray, service_ns: IntArray, workers: int) -> IntArray:
    """When each op goes into service: first come, first served, by so many workers. Ops are in the order of coming."""
    if workers == 1:
        return _alone(queued_ns, service_ns)
    free = [0] * workers
    heapify(free)
    started = []
    for queued, service in zip(queued_ns.tolist(), service_ns.tolist(), strict=True):
        start = max(queued, free[0])
        heapreplace(free, start + service)
        started.append(start)
    return np.array(started, dtype=np.int64)


def _alone(queued_ns: IntArray, service_ns: IntArray) -> IntArray:
    """One worker: Lindley's recursion, unrolled to a running maximum."""
    total = np.cumsum(service_ns)
    before = total - service_ns
    return np.asarray(np.maximum.accumulate(queued_ns - before) + before, dtype=np.int64)


LOOP_NS = 50_000
"""Between two steps: what the engine's thread does besides."""


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What a step takes."""

    budget_tokens: int
    step_ns: int
    prefill_token_ns: int
    decode_token_ns: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order, and the chunks of prompts in them: which request, which step, how many tokens."""

    start_ns: IntArray
    end_ns: IntArray
    prefill_tokens: IntArray
    decode_tokens: IntArray
    chunk_request: IntArray
    chunk_step: IntArray
    chunk_tokens: IntArray


def run_steps(
    ready_ns: IntArray, todo_tokens: IntArray, output_tokens: IntArray, costs: StepCosts, noise_ns: IntArray
) -> Steps:
    """Give every prompt its steps: a token for each that decodes, then prompts in order of arrival while the budget lasts."""
    return _Stepper(ready_ns, todo_tokens, output_tokens, costs, noise_ns).run()


class _Stepper:
    """One run of the scheduler; about five microseconds a step."""

    def __init__(
        self, ready_ns: IntArray, todo_tokens: IntArray, output_tokens: IntArray, costs: StepCosts, noise_ns: IntArray
    ) -> None:
        self._order = np.argsort(ready_ns, kind="stable").tolist()
        self._ready, self._todo = ready_ns.tolist(), todo_tokens.tolist()
        self._outputs, self._costs, self._noise = output_tokens.tolist(), costs, noise_ns.tolist()
        self._next = 0
        self._prompts: list[int] = []
        self._decoding = 0
        self._leaving: dict[int, int] = {}
        self._steps: list[tuple[int, int, int, int]] = []
        self._chunks: list[tuple[int, int, int]] = []

    def run(self) -> Steps:
        """Until every prompt is computed."""
        t_ns = 0
        while self._next < len(self._order) or self._prompts:
            t_ns = self._take(t_ns)
            t_ns = self._step(t_ns)
        steps = np.array(self._steps, dtype=np.int64).reshape(-1, 4)
        chunks = np.array(self._chunks, dtype=np.int64).reshape(-1, 3)
        return Steps(*steps.T, *chunks.T)

    def _take(self, t_ns: int) -> int:
        """Let in who is ready; with nothing to do, wait for the next one."""
        order, ready = self._order, self._ready
        if not self._prompts and not self._decoding:
            t_ns = max(t_ns, ready[order[self._next]])
        while self._next < len(order) and ready[order[self._next]] <= t_ns:
            heappush(self._prompts, order[self._next])
            self._next += 1
        return t_ns

    def _step(self, t_ns: int) -> int:
        """One step; when the next may begin."""
        costs, number = self._costs, len(self._steps)
        left = costs.budget_tokens - self._decoding
        decodes, joining = self._decoding, 0
        while self._prompts and left > 0:
            request = self._prompts[0]
            whole = self._todo[request]
            tokens = whole if whole <= left else left - left % BLOCK_TOKENS
            if tokens <= 0:
                break
            self._chunks.append((request, number, tokens))
            left -= tokens
            self._todo[request] = whole - tokens
            if tokens < whole:
                break
            heappop(self._prompts)
            joining += self._joins(request, number)
        prefill = costs.budget_tokens - decodes - left
        end_ns = t_ns + costs.step_ns + prefill * costs.prefill_token_ns + decodes * costs.decode_token_ns
        end_ns += self._noise[number % len(self._noise)]
        self._steps.append((t_ns, end_ns, prefill, decodes))
        self._decoding = decodes + joining - self._leaving.pop(number, 0)
        return int(end_ns + LOOP_NS)

    def _joins(self, request: int, number: int) -> int:
        """A prompt is done: 1 if it decodes from the next step on."""
        more = self._outputs[request] - 1
        if more <= 0:
            return 0
        self._leaving[number + more] = self._leaving.get(number + more, 0) + 1
        return 1
