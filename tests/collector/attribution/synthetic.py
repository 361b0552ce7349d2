"""A small simulated engine that writes event tables: enough physics that faults spread as they do in a real one.

Requests arrive at random, some restore from nvme or host, wait for kv_load, then for the budget of steps that hold a
limited number of prompt tokens, first come first served. The nvme tier has workers that serve a queue. Nothing here
runs in real time.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Event,
    FaultCleared,
    FaultInjected,
    LookupFinished,
    ManifestDeclared,
    NamespaceDeclared,
    PrefillChunk,
    RequestAdmitted,
    RequestArrived,
    RequestFinished,
    RequestFirstToken,
    RequestWaiting,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
    SwapOutQueued,
    SwapOutStarted,
    SwapOutWritten,
)
from kvtrail_schema.identity import NamespaceId, OpId, RequestId, StepId
from kvtrail_schema.reasons import PrefillReason, WaitReason

MS = 1_000_000
SECOND = 1_000 * MS
TENANT, NEIGHBOUR = NamespaceId(11), NamespaceId(12)


class Fault(Enum):
    """What goes wrong during the fault's window."""

    NONE = "none"
    NVME_SLOW = "nvme-slow"
    NVME_QUEUE = "nvme-queue"
    LONG_PREFILL = "long-prefill"
    SLOW_STEPS = "slow-steps"
    SLOW_LOOKUP = "slow-lookup"
    NOTICED_LATE = "noticed-late"


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: how long, how busy, what goes wrong when (in seconds; a second fault with the first), how noisy it is."""

    seed: int
    fault: Fault = Fault.NONE
    second: Fault = Fault.NONE
    start_s: float = 45.0
    end_s: float = 65.0
    run_s: float = 95.0
    rate_per_s: float = 35.0
    hiccups_per_s: float = 0.15
    budget_tokens: int = 512
    workers: int = 4


@dataclass(slots=True)
class _Request:
    """A request on its way through the simulation."""

    req: RequestId
    arrived_ns: int
    tokens: int
    todo: int
    ns: NamespaceId
    ready_ns: int = 0
    started: bool = False


@dataclass(slots=True)
class Run:
    """Collects the events of one run."""

    plan: Plan
    events: list[Event] = field(default_factory=list)

    @property
    def fault_window_ns(self) -> tuple[int, int]:
        """When the fault was on."""
        return int(self.plan.start_s * SECOND), int(self.plan.end_s * SECOND)

    def numbered(self) -> list[Event]:
        """The events in order of time, with their seqs."""
        ordered = sorted(self.events, key=lambda event: event.t_ns)
        return [_with_seq(event, seq) for seq, event in enumerate(ordered, start=1)]

    def table(self) -> pa.Table:
        """The events as the store keeps them."""
        return stream_table(self.numbered())


def _with_seq(event: Event, seq: int) -> Event:
    """The event under this seq."""
    return msgspec.structs.replace(event, seq=seq)


def stream_table(events: list[Event]) -> pa.Table:
    """Events of one stream as a table with the columns that name the stream."""
    table = table_of(events)
    rows = table.num_rows
    for name, column in (
        ("engine", pa.array(["demo"] * rows, pa.utf8())),
        ("epoch", pa.array([7] * rows, pa.uint64())),
        ("rank", pa.array([0] * rows, pa.uint16())),
    ):
        table = table.append_column(name, column)
    return table


def simulate(plan: Plan) -> Run:
    """One run, the same for the same plan."""
    return _Engine(plan).run()


class _Engine:
    """The simulation: first arrivals and transfers, then the loop of steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.out = plan, Run(plan)
        self.rng = np.random.default_rng([plan.seed, list(Fault).index(plan.fault)])  # a new fault stands last
        self.ids = count(1)
        self.hiccups = self._hiccups()

    def _hiccups(self) -> list[tuple[int, int]]:
        """Times at which the whole machine stands still for a moment, as laptops do."""
        number = self.rng.poisson(self.plan.run_s * self.plan.hiccups_per_s)
        starts = np.sort(self.rng.uniform(0, self.plan.run_s, number)) * SECOND
        return [(int(start), int(self.rng.exponential(120) * MS)) for start in starts]

    def _delay(self, t_ns: int, length_ns: int) -> int:
        """When work that begins at an instant ends, hiccups included."""
        end = t_ns + length_ns
        for start, pause in self.hiccups:
            if t_ns <= start < end:
                end += pause
        return end

    def _is_on(self, fault: Fault, t_ns: int) -> bool:
        """Whether a fault is on."""
        start, end = self.out.fault_window_ns
        return self._has(fault) and start <= t_ns < end

    def _has(self, fault: Fault) -> bool:
        """Whether a fault is one of the run's."""
        return fault in {self.plan.fault, self.plan.second}

    def run(self) -> Run:
        """Simulate everything."""
        self._declare()
        requests = sorted([*self._arrivals(), *self._long_prompts()], key=lambda request: request.arrived_ns)
        self._transfers(requests)
        self._steps(sorted(requests, key=lambda request: request.ready_ns))
        return self.out

    def _emit(self, event: Event) -> None:
        """Keep an event."""
        self.out.events.append(event)

    def _declare(self) -> None:
        """What an engine says of itself first, and what a drill says."""
        self._emit(ManifestDeclared(t_ns=0, text='{"device": "cpu-emulated"}'))
        for ns, tenant in ((TENANT, "aa"), (NEIGHBOUR, "bb")):
            self._emit(NamespaceDeclared(t_ns=0, ns=ns, text=f'{{"tenant": "{tenant}"}}'))
        if self.plan.fault is not Fault.NONE:
            start, end = self.out.fault_window_ns
            self._emit(FaultInjected(t_ns=start, text=self.plan.fault.value))
            self._emit(FaultCleared(t_ns=end, text=self.plan.fault.value))

    def _arrivals(self) -> Iterator[_Request]:
        """The tenant's own requests."""
        number = self.rng.poisson(self.plan.run_s * self.plan.rate_per_s)
        for at in np.sort(self.rng.uniform(0, self.plan.run_s, number)):
            tokens = int(np.clip(self.rng.lognormal(5.3, 0.4), 64, 512))
            yield _Request(RequestId(next(self.ids)), int(at * SECOND), tokens, max(tokens // 2, 16), TENANT)

    def _long_prompts(self) -> Iterator[_Request]:
        """A neighbour's very long prompts, one every two seconds or so, while that fault is on."""
        if self._has(Fault.LONG_PREFILL):
            at = self.plan.start_s
            while at < self.plan.end_s:
                yield _Request(RequestId(next(self.ids)), int(at * SECOND), 12_000, 12_000, NEIGHBOUR)
                at += float(self.rng.uniform(1.9, 2.6))

    def _transfers(self, requests: list[_Request]) -> None:
        """Serve the nvme queue in order of arrival, and say of each request when its data is there."""
        jobs: list[tuple[int, _Request | None]] = []
        for request in requests:
            self._arrive(request)
            restores = request.tokens < 10_000 and self.rng.random() < 0.35
            if restores:
                jobs.append((request.ready_ns, request))
        jobs += [(at, None) for at in self._floods()]
        workers = [0] * self.plan.workers
        for at, waiter in sorted(jobs, key=lambda job: job[0]):
            self._serve(at, waiter, workers)

    def _arrive(self, request: _Request) -> None:
        """A request arrives and is looked up."""
        at = request.arrived_ns
        took = int(self.rng.gamma(9, 14) * MS) if self._is_on(Fault.SLOW_LOOKUP, at) else int(0.3 * MS)
        looked = at + took
        self._emit(RequestArrived(t_ns=at, req=request.req, tokens=request.tokens, ns=request.ns, text=f"r{request.req}"))
        self._emit(LookupFinished(t_ns=looked, req=request.req, duration_ns=took, tokens=request.tokens))
        request.ready_ns = looked

    def _floods(self) -> list[int]:
        """Bursts of another tenant's writes, while that fault is on."""
        if not self._has(Fault.NVME_QUEUE):
            return []
        bursts = np.arange(self.plan.start_s, self.plan.end_s, 0.5)
        return [int(at * SECOND) + index for at in bursts for index in range(80)]

    def _serve(self, at: int, waiter: _Request | None, workers: list[int]) -> None:
        """One op is served by the next free worker."""
        start = max(heapq.heappop(workers), at)
        slow = 7.0 if self._is_on(Fault.NVME_SLOW, start) and waiter else 1.0
        io = int(self.rng.gamma(16, 1.25 * MS) * slow)
        end = self._delay(start, io + int(0.5 * MS))
        heapq.heappush(workers, end)
        if waiter is None:
            self._write(at, start, end, io)
        else:
            self._read(waiter, at, start, end, io)

    def _write(self, at: int, start: int, end: int, io: int) -> None:
        """Tell of a write."""
        op, size = OpId(next(self.ids)), 1 << 20
        own: dict[str, Any] = {"op": op, "src": Tier.HOST, "dst": Tier.NVME, "ns": NEIGHBOUR, "bytes": size}
        self._emit(SwapOutQueued(t_ns=at, **own))
        self._emit(SwapOutStarted(t_ns=start, **own))
        self._emit(SwapOutWritten(t_ns=end, queue_ns=start - at, io_ns=io, copy_ns=int(0.5 * MS), **own))

    def _read(self, waiter: _Request, at: int, start: int, end: int, io: int) -> None:
        """Tell of a read and of the request that waits for it."""
        op, size = OpId(next(self.ids)), 1 << 20
        own: dict[str, Any] = {"op": op, "src": Tier.NVME, "dst": Tier.GPU, "req": waiter.req, "bytes": size}
        self._emit(RequestWaiting(t_ns=at, req=waiter.req, reason=WaitReason.KV_LOAD))
        self._emit(SwapInQueued(t_ns=at, **own))
        self._emit(SwapInStarted(t_ns=start, **own))
        self._emit(SwapInLoaded(t_ns=end, queue_ns=start - at, io_ns=io, copy_ns=int(0.5 * MS), **own))
        waiter.ready_ns = end + (int(self.rng.gamma(9, 14) * MS) if self._is_on(Fault.NOTICED_LATE, at) else 0)

    def _steps(self, ready: list[_Request]) -> None:
        """Compute prompts first come first served; a step holds a budget of tokens."""
        now, place = 0, 0
        queue: list[_Request] = []
        while place < len(ready) or queue:
            if not queue:
                now = max(now, ready[place].ready_ns)
            while place < len(ready) and ready[place].ready_ns <= now:
                self._emit(RequestWaiting(t_ns=max(ready[place].ready_ns, 1), req=ready[place].req, reason=WaitReason.BUDGET))
                queue.append(ready[place])
                place += 1
            now = self._step(now, queue)

    def _step(self, now: int, queue: list[_Request]) -> int:
        """One step: chunks for the head of the queue; returns when it ends."""
        step, left, chunks = StepId(next(self.ids)), self.plan.budget_tokens, []
        for request in queue:
            if left:
                tokens = min(left, request.todo)
                chunks.append((request, tokens))
                left -= tokens
        total = sum(tokens for _, tokens in chunks)
        slow = 6.0 if self._is_on(Fault.SLOW_STEPS, now) else 1.0
        end = self._delay(now, int((2.0 + 0.02 * total) * MS * self.rng.uniform(0.9, 1.2) * slow))
        self._emit(StepStarted(t_ns=now, step=step))
        for request, tokens in chunks:
            self._chunk(request, tokens, step, now, end)
        self._emit(StepFinished(t_ns=end, step=step, tokens=total, prefill_tokens=total))
        queue[:] = [request for request in queue if request.todo]
        return end

    def _chunk(self, request: _Request, tokens: int, step: StepId, now: int, end: int) -> None:
        """Compute some of a prompt, perhaps to its first token."""
        if not request.started:
            self._emit(RequestAdmitted(t_ns=now, req=request.req, step=step))
            request.started = True
        request.todo -= tokens
        self._emit(PrefillChunk(t_ns=end, req=request.req, step=step, tokens=tokens, reason=PrefillReason.NEW))
        if not request.todo:
            self._emit(RequestFirstToken(t_ns=end, req=request.req, step=step))
            self._emit(RequestFinished(t_ns=end, req=request.req, tokens=1))


def without_drills(events: list[Event]) -> list[Event]:
    """The same run as if no drill had said what it did, seqs given anew."""
    kept = [event for event in events if not isinstance(event, FaultInjected | FaultCleared)]
    return [_with_seq(event, seq) for seq, event in enumerate(kept, start=1)]


__all__ = ["Fault", "Plan", "Run", "simulate", "stream_table", "without_drills"]
