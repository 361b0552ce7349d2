"""What a wrapped connector of TensorRT-LLM tells, as events: lookups, loads and saves, each with its request.

The connector's scheduler and its workers are different processes; both draw the same ids for a request and for its load and its
save, so their events join. Bytes are not told. A load that the connector does within a step has no end of its own: the time for
which the step stood still for it is a counter.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, ParamSpec, TypeVar

from kvtrail_schema.absent import NO_U32
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import OpId, RequestId, keyed_id

from kvtrail_agent.attach.guard import Guard
from kvtrail_agent.attach.vllm_settings import attachment_settings
from kvtrail_agent.errors import AgentError
from kvtrail_agent.importers.user_key import user_key, user_key_file
from kvtrail_agent.recorder import Recorder

Args = ParamSpec("Args")
Answer = TypeVar("Answer")
_SAMPLE_NS: Final = 1_000_000_000
_MOST_OPEN: Final = 100_000


class Ids:
    """The ids of requests and of their one load and one save, the same in every process with the same key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def request(self, request_id: object) -> RequestId:
        """A request by the engine's own id."""
        return RequestId(self._id(b"request", request_id))

    def load(self, request_id: object) -> OpId:
        """What is loaded for a request."""
        return OpId(self._id(b"trtllm-load", request_id))

    def save(self, request_id: object) -> OpId:
        """What is saved of a request."""
        return OpId(self._id(b"trtllm-save", request_id))

    def _id(self, what: bytes, request_id: object) -> int:
        """A keyed hash."""
        return keyed_id(self._key, what, str(request_id).encode(errors="replace"))


class SchedulerWatch:
    """The scheduler's side; used by its thread alone. Without an emitter nothing is told."""

    def __init__(self, emitter: Emitter | None, ids: Ids, tier: Tier) -> None:
        self.guard = Guard("TensorRT-LLM connector, scheduler")
        self._emitter = emitter
        self._ids = ids
        self._tier = tier
        self._matched: dict[object, int] = {}

    def matched(self, request: Any, computed: int, answer: Any, began_ns: int) -> None:
        """The connector said how many tokens it has for a request."""
        if self._emitter is not None:
            self.guard.run(self._tell_matched, self._emitter, request, computed, answer, began_ns)

    def allocated(self, request: Any, block_ids: Any) -> None:
        """Blocks for a load are there: it waits to begin."""
        if self._emitter is not None:
            self.guard.run(self._tell_allocated, self._emitter, request, block_ids)

    def finished(self, request: Any, block_ids: Any, answer: Any) -> None:
        """A request ended, and what is left of it to save is queued."""
        if self._emitter is not None:
            self.guard.run(self._tell_finished, self._emitter, request, block_ids, answer)

    def _tell_matched(self, emitter: Emitter, request: Any, computed: int, answer: Any, began_ns: int) -> None:
        """A lookup: what the GPU had is told by the engine, what the connector has by the connector."""
        now_ns, found = time.monotonic_ns(), int((answer[0] if isinstance(answer, tuple) else answer) or 0)
        name = request.request_id
        tokens = _prompt_tokens(request)
        asked = max(tokens if tokens is not None else computed + found, 0)
        at_host, at_nvme, at_remote = (found if self._tier is tier else NO_U32 for tier in (Tier.HOST, Tier.NVME, Tier.REMOTE))
        emitter.lookup_finished(
            self._ids.request(name),
            now_ns - began_ns,
            asked,
            tokens_gpu=computed,
            tokens_host=at_host,
            tokens_nvme=at_nvme,
            tokens_remote=at_remote,
            t_ns=now_ns,
        )
        if found and len(self._matched) < _MOST_OPEN:
            self._matched[name] = found

    def _tell_allocated(self, emitter: Emitter, request: Any, block_ids: Any) -> None:
        """The load of a request that has something to load."""
        if self._matched.pop(request.request_id, 0):
            op, req = self._ids.load(request.request_id), self._ids.request(request.request_id)
            emitter.swap_in_queued(op, self._tier, Tier.GPU, req=req, depth=len(block_ids))

    def _tell_finished(self, emitter: Emitter, request: Any, block_ids: Any, answer: Any) -> None:
        """The save of a request that goes on after its end."""
        self._matched.pop(request.request_id, None)
        if answer is True:
            op, req = self._ids.save(request.request_id), self._ids.request(request.request_id)
            emitter.swap_out_queued(op, Tier.GPU, self._tier, req=req, depth=len(block_ids))


class WorkerWatch:
    """A worker's side; used by its thread alone. Without an emitter calls pass through untimed."""

    def __init__(self, emitter: Emitter | None, ids: Ids, tier: Tier) -> None:
        self.guard = Guard("TensorRT-LLM connector, worker")
        self._emitter = emitter
        self._ids = ids
        self._tier = tier
        self._loading: set[object] = set()
        self._spent_ns: dict[str, int] = {}
        self._told_ns = 0

    def timed(self, what: str, call: Callable[Args, Answer], *args: Args.args, **named: Args.kwargs) -> Answer:
        """A call of the inner connector, and for how long it held the step. What it raises comes through unchanged."""
        if self._emitter is None:
            return call(*args, **named)
        began_ns = time.monotonic_ns()
        try:
            return call(*args, **named)
        finally:
            self._spent_ns[what] = self._spent_ns.get(what, 0) + time.monotonic_ns() - began_ns

    def reported(self, finished: Iterable[object], started: Iterable[object], answer: Any) -> None:
        """The worker said which requests are saved and which are loaded. Once a step."""
        if self._emitter is not None:
            self.guard.run(self._tell, self._emitter, finished, started, answer)

    def _tell(self, emitter: Emitter, _finished: Iterable[object], started: Iterable[object], answer: Any) -> None:
        """Loads that began and ended, saves that ended, and, each second, the time that steps stood still."""
        saved, loaded = answer
        for name in started:
            if name not in self._loading and len(self._loading) < _MOST_OPEN:
                self._loading.add(name)
                emitter.swap_in_started(self._ids.load(name), self._tier, Tier.GPU, req=self._ids.request(name))
        for name in loaded:
            self._loading.discard(name)
            emitter.swap_in_loaded(self._ids.load(name), self._tier, Tier.GPU, req=self._ids.request(name))
        for name in saved:
            emitter.swap_out_written(self._ids.save(name), Tier.GPU, self._tier, req=self._ids.request(name))
        now_ns = time.monotonic_ns()
        if now_ns - self._told_ns >= _SAMPLE_NS:
            self._told_ns = now_ns
            for what, spent_ns in self._spent_ns.items():
                emitter.counter_sampled(f"trtllm.connector.{what}_seconds_total", spent_ns / 1e9)


def scheduler_watch(inner: str) -> SchedulerWatch:
    """A watch by the environment's settings, on a recorder of its own (rank 0); one that tells nothing where they name none."""
    emitter, ids, tier = _attached(inner, 0)
    return SchedulerWatch(emitter, ids, tier)


def worker_watch(inner: str) -> WorkerWatch:
    """As `scheduler_watch`, for a worker: its stream's rank is its own rank after the scheduler's."""
    import os  # noqa: PLC0415 - a worker's rank is in its environment alone

    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("SLURM_PROCID") or os.environ.get("RANK") or "0"
    emitter, ids, tier = _attached(inner, 1 + (int(rank) if rank.isdigit() else 0))
    return WorkerWatch(emitter, ids, tier)


def _attached(inner: str, rank: int) -> tuple[Emitter | None, Ids, Tier]:
    """Recorder, ids and tier; no recorder where settings are missing or impossible, which is said once and never fatal."""
    guard = Guard("TensorRT-LLM connector, start")
    found: list[tuple[Emitter | None, Ids, Tier]] = []
    guard.run(lambda: found.append(_start(inner, rank)))
    return found[0] if found else (None, Ids(bytes(16)), Tier.REMOTE)


def _start(inner: str, rank: int) -> tuple[Emitter | None, Ids, Tier]:
    """As the environment says.

    Raises:
        AgentError: a setting is impossible.
    """
    told = attachment_settings({}, rank)
    if told is None:
        raise AgentError("KVTRAIL_ENGINE and KVTRAIL_TRANSPORT are not set: the connector runs unwatched")
    recorder = Recorder.start(told.agent)
    recorder.manifest_declared(f'{{"backend": "tensorrt-llm", "connector": "{inner}"}}')
    return recorder, Ids(user_key(told.key_file or user_key_file())), Tier.REMOTE if told.tier is None else told.tier


def _prompt_tokens(request: Any) -> int | None:
    """The length of a request's prompt, where its object tells it."""
    for name in ("prompt_len", "orig_prompt_len", "num_prompt_tokens"):
        told = getattr(request, name, None)
        if isinstance(told, int):
            return told
    return None
