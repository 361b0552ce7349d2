"""The scheduler's side of an attachment: what vLLM tells a connector of requests and steps, as events.

All of it runs on the thread of vLLM's scheduler, through a `Guard`, after the inner connector has answered. It reads vLLM's
objects by the names that they have in the versions named in docs/engines/vllm.md, and writes none of them.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

from kvtrail_schema.absent import NO_TEXT, NO_U8
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.reasons import CancelReason, ErrorReason, FinishReason, PreemptReason, PrefillReason, RejectReason

from kvtrail_agent.attach.vllm_chain import Chains
from kvtrail_agent.attach.vllm_flights import Chunk, Flight, Flights
from kvtrail_agent.attach.vllm_loads import Loads
from kvtrail_agent.attach.vllm_names import Names, trace_of
from kvtrail_agent.attach.vllm_queue import Queue
from kvtrail_agent.attach.vllm_request import Lookup, Phase, Watched
from kvtrail_agent.attach.vllm_worker import ABSENT, StepTimes, on_clock

_LARGEST_PRIORITY: Final = 254


class SchedulerWatch:
    """Everything that is known of the requests of one scheduler. Memory: a few hundred bytes a live request."""

    def __init__(self, emit: Emitter, names: Names, chains: Chains, loads: Loads, queue: Queue) -> None:
        self._emit = emit
        self._names = names
        self._chains = chains
        self._loads = loads
        self._queue = queue
        self._flights = Flights(emit)
        self.requests: dict[str, Watched] = {}
        self._running: set[str] = set()
        self._decoding: dict[str, Watched] = {}
        self._ending: list[tuple[str, Watched]] = []
        self._open: dict[str, Watched] = {}

    @property
    def waiting(self) -> int:
        """Requests that are not running."""
        return len(self.requests) - len(self._running)

    @property
    def loading(self) -> int:
        """Loads that have not ended."""
        return len(self._open)

    # --- what the scheduler tells

    def came(self, request: Any, now_ns: int) -> None:
        """`on_new_request`. A session that goes on with more input is the same request."""
        if request.request_id in self.requests:
            return
        ns, declared = self._names.namespace(request)
        if declared is not None:
            self._emit.namespace_declared(ns, declared, t_ns=now_ns)
        watched = Watched(self._names.request(request.request_id), ns, request)
        self.requests[request.request_id] = watched
        self._queue.came(watched)
        priority = int(getattr(request, "priority", 0) or 0)
        self._emit.request_arrived(
            watched.req,
            int(request.num_prompt_tokens),
            ns,
            str(request.request_id) or NO_TEXT,
            trace_of(request),
            priority if 0 < priority <= _LARGEST_PRIORITY else NO_U8,
            t_ns=now_ns,
        )

    def looked_up(self, request: Any, gpu_tokens: int, found: int | None, is_async: bool, span: tuple[int, int]) -> None:
        """`get_num_new_matched_tokens`. `found` is None where the inner connector does not know yet."""
        watched = self._known(request)
        begin_ns, end_ns = span
        watched.lookup = Lookup(gpu_tokens, found or 0, self._loads.tier, is_async)
        watched.outer = (gpu_tokens, gpu_tokens + (found or 0))
        told: dict[str, Any] = {} if found is None else {_TOKENS_OF[self._loads.tier]: found}
        self._emit.lookup_finished(
            watched.req, end_ns - begin_ns, int(request.num_tokens), tokens_gpu=gpu_tokens, t_ns=end_ns, **told
        )
        if found is not None:
            self._queue.asked(watched)

    def given(self, request: Any, slots: list[int], outer_tokens: int, tier: Tier, now_ns: int) -> None:
        """`update_state_after_alloc`: a request was given its blocks, and `outer_tokens` of them are to be loaded."""
        watched = self._known(request)
        found = watched.lookup
        if found is None:
            return
        found.tier, found.outer_tokens = tier, outer_tokens
        watched.outer = (found.gpu_tokens, found.gpu_tokens + outer_tokens)
        self._chains.told(watched)
        if not outer_tokens:
            watched.lookup = None
            return
        size = self._chains.block_tokens
        first, last = found.gpu_tokens // size, -(-(found.gpu_tokens + outer_tokens) // size)
        blocks = self._chains.blocks(request, first, last)
        places = slots[first : first + len(blocks)]
        load = self._loads.new_load(tier, blocks[: len(places)], places, outer_tokens, now_ns, is_async=found.is_async)
        self._loads.queue(watched, load)
        self._open[request.request_id] = watched
        if found.is_async:
            self._queue.loads(watched, now_ns)
        watched.lookup = None

    def built(self, output: Any, now_ns: int) -> None:
        """`build_connector_meta`: the scheduler has decided on a step."""
        flight = self._flights.begin(int(output.total_num_scheduled_tokens), now_ns)
        for request_id in output.preempted_req_ids or ():
            self._preempted(request_id, now_ns)
        computed = {new.req_id: int(new.num_computed_tokens) for new in output.scheduled_new_reqs}
        again = output.scheduled_cached_reqs
        computed |= dict(zip(again.req_ids, again.num_computed_tokens, strict=True))
        for request_id, tokens in output.num_scheduled_tokens.items():
            watched = self.requests.get(request_id)
            if watched is not None:
                if watched.phase is not Phase.RUNNING:
                    self._runs(flight, request_id, watched, now_ns)
                self._scheduled(flight, watched, computed.get(request_id, 0), int(tokens))
        flight.loading = [one for one in flight.batch if one.load is not None and not one.load.is_async]
        others = (one for one in self.requests.values() if one.phase in {Phase.WAITING, Phase.PREEMPTED})
        self._queue.built(others, len(self._running), output, now_ns)

    @staticmethod
    def _scheduled(flight: Flight, watched: Watched, start: int, tokens: int) -> None:
        """One request of a step."""
        flight.batch.append(watched)
        if start < watched.prefill_end:
            end = min(start + tokens, watched.prefill_end)
            flight.chunks.append(Chunk(watched, start, end - start, end == watched.prefill_end))
        else:
            flight.decoding.append(watched)

    def _runs(self, flight: Flight, request_id: str, watched: Watched, now_ns: int) -> None:
        """A request goes from the queue into the batch."""
        if watched.admitted:
            watched.prefill_reason = PrefillReason.PREEMPTED
            self._emit.request_resumed(watched.req, PreemptReason.CAPACITY, flight.step, t_ns=now_ns)
        else:
            self._emit.request_admitted(watched.req, flight.step, t_ns=now_ns)
        watched.admitted, watched.phase, watched.reason = True, Phase.RUNNING, None
        watched.prefill_end = int(watched.request.num_tokens)
        self._running.add(request_id)

    def _preempted(self, request_id: str, now_ns: int) -> None:
        """A request lost its blocks."""
        watched = self.requests.get(request_id)
        if watched is None or watched.phase is not Phase.RUNNING:
            return
        if self._decoding.pop(request_id, None) is not None:
            self._emit.decode_left(watched.req, self._newest(), t_ns=now_ns)
        self._running.discard(request_id)
        watched.phase, watched.reason = Phase.PREEMPTED, None
        self._emit.request_preempted(watched.req, PreemptReason.CAPACITY, self._newest(), t_ns=now_ns)
        self._queue.came(watched)

    def _newest(self) -> Any:
        """The number of the step that is under way."""
        return self._flights.oldest.step if self._flights.oldest is not None else 0

    # --- what comes back

    def worker_said(self, output: Any, times: Iterable[StepTimes], wall_offset_ns: int, now_ns: int) -> None:
        """`update_connector_output`: the times of the workers in the oldest step, and which transfers ended."""
        told = [on_clock(one, wall_offset_ns) for one in times]
        flight = self._flights.oldest
        bad = frozenset(output.invalid_block_ids or ())
        slowest = max(told, key=lambda one: one.load_end_ns, default=None)
        if slowest is not None:
            self._begun(slowest)
        if flight is not None and slowest is not None:
            self._made_in(flight, slowest, bad)
            self._loads.saved(flight.batch, max(told, key=lambda one: one.save_ns), flight.step)
        arrived_ns = max((one.asked_ns for one in told if one.asked_ns != ABSENT), default=now_ns)
        failed = frozenset(getattr(output, "failed_recving", None) or ())
        for request_id in {*(output.finished_recving or ()), *failed}:
            self._arrived(request_id, arrived_ns, bad, whole=request_id in failed)
        for request_id in output.finished_sending or ():
            self._loads.sent(request_id, arrived_ns)

    def _begun(self, times: StepTimes) -> None:
        """Loads that were queued before the worker's call are in service since it."""
        for watched in self._open.values() if times.load_begin_ns != ABSENT else ():
            load = watched.load
            if load is not None and not load.begun_ns and load.queued_ns <= times.load_begin_ns:
                load.begun_ns = times.load_begin_ns

    def _made_in(self, flight: Flight, times: StepTimes, bad: frozenset[int]) -> None:
        """Loads that a step makes itself: everybody in it stood still for them."""
        if not flight.loading or times.load_end_ns == ABSENT:
            return
        first = flight.loading[0].load
        op, end_ns = (first.op if first is not None else None), max(times.load_end_ns, times.layer_end_ns)
        self._loads.stood_still(flight.batch, op, times.load_end_ns - times.load_begin_ns, times.load_end_ns, flight.step)
        self._loads.stood_still(flight.batch, op, times.layer_wait_ns, times.layer_end_ns, flight.step)
        waited = times.layer_wait_ns >= _LAYERS_WAIT_NS
        for watched in flight.loading:
            self._open.pop(watched.request.request_id, None)
            self._loads.loaded(watched, end_ns if waited else times.load_end_ns, bad)

    def _arrived(self, request_id: str, now_ns: int, bad: frozenset[int], *, whole: bool) -> None:
        """A load that went on by itself ended."""
        watched = self._open.pop(request_id, None)
        if watched is None or watched.load is None:
            return
        self._loads.loaded(watched, now_ns, frozenset(watched.load.slots) if whole else bad)

    def done(self, now_ns: int) -> None:
        """`take_events`, the last that vLLM asks of a connector in a step: its results are taken."""
        flight = self._flights.end(now_ns)
        if flight is None:
            return
        if flight.tokens:
            self._chunks(flight, now_ns)
            self._tokens(flight, now_ns)
        ending, self._ending = self._ending, []
        for request_id, watched in ending:
            self._ended(request_id, watched, now_ns)

    def _chunks(self, flight: Flight, now_ns: int) -> None:
        """What a step prefilled: again what was evicted before, and the rest."""
        for chunk in flight.chunks:
            watched, end = chunk.watched, chunk.start + chunk.tokens
            again = sum(max(min(end, last) - max(chunk.start, first), 0) for first, last in watched.again)
            if again and watched.prefill_reason is PrefillReason.NEW:
                self._emit.prefill_chunk(watched.req, flight.step, again, PrefillReason.EVICTED, chunk.start, t_ns=now_ns)
                if chunk.tokens > again:
                    rest = chunk.tokens - again
                    self._emit.prefill_chunk(
                        watched.req, flight.step, rest, PrefillReason.NEW, chunk.start + again, t_ns=now_ns
                    )
            else:
                self._emit.prefill_chunk(
                    watched.req, flight.step, chunk.tokens, watched.prefill_reason, chunk.start, t_ns=now_ns
                )

    def _tokens(self, flight: Flight, now_ns: int) -> None:
        """Who got tokens from a step: one each, unless it is said."""
        for chunk in flight.chunks:
            if chunk.ends:
                self._answered(chunk.watched, flight, now_ns)
        for watched in flight.decoding:
            request_id = watched.request.request_id
            count = int(watched.request.num_output_tokens) - watched.outputs
            if request_id in self._decoding:
                watched.outputs += count
                if count != 1:
                    self._emit.tokens_emitted(watched.req, flight.step, max(count, 0), t_ns=now_ns)
            elif request_id in self.requests:
                self._answered(watched, flight, now_ns)
        if len(self._decoding) > len(flight.decoding):
            there = {id(watched) for watched in flight.batch}
            for watched in self._decoding.values():
                if id(watched) not in there:
                    self._emit.tokens_emitted(watched.req, flight.step, 0, t_ns=now_ns)

    def _answered(self, watched: Watched, flight: Flight, now_ns: int) -> None:
        """A request that was prefilled has its first token, or goes on after it was preempted."""
        outputs = int(watched.request.num_output_tokens)
        if outputs <= watched.outputs:
            return
        watched.outputs, watched.prefill_reason, watched.again = outputs, PrefillReason.NEW, []
        if not watched.answered:
            watched.answered = True
            self._emit.request_first_token(watched.req, flight.step, t_ns=now_ns)
        self._decoding[watched.request.request_id] = watched
        self._emit.decode_joined(watched.req, flight.step, t_ns=now_ns)

    # --- ends

    def finished(self, request: Any, slots: int, now_ns: int, *, keeps_blocks: bool) -> None:
        """`request_finished`. A request whose last token comes with the step under way ends with that step."""
        watched = self.requests.get(request.request_id)
        if watched is None:
            return
        if keeps_blocks:
            self._loads.sending(request.request_id, watched, slots, now_ns)
        flight = self._flights.oldest
        if flight is not None and any(one is watched for one in flight.batch):
            self._ending.append((request.request_id, watched))
        else:
            self._ended(request.request_id, watched, now_ns)

    def _ended(self, request_id: str, watched: Watched, now_ns: int) -> None:
        """The last that is told of a request."""
        if self._decoding.pop(request_id, None) is not None:
            self._emit.decode_left(watched.req, self._newest(), t_ns=now_ns)
        status = str(getattr(watched.request.status, "name", watched.request.status))
        match status:
            case "FINISHED_STOPPED" | "FINISHED_REPETITION":
                self._emit.request_finished(watched.req, int(watched.request.num_output_tokens), FinishReason.STOP, t_ns=now_ns)
            case "FINISHED_LENGTH_CAPPED":
                self._emit.request_finished(
                    watched.req, int(watched.request.num_output_tokens), FinishReason.LENGTH, t_ns=now_ns
                )
            case "FINISHED_IGNORED":
                self._emit.request_rejected(watched.req, RejectReason.LIMIT, t_ns=now_ns)
            case "FINISHED_ERROR":
                self._emit.error(
                    ErrorReason.INTERNAL, req=watched.req, text="vLLM ended the request with an error", t_ns=now_ns
                )
                self._emit.request_cancelled(watched.req, CancelReason.SUPERSEDED, t_ns=now_ns)
            case _:
                self._emit.request_cancelled(watched.req, CancelReason.CLIENT, t_ns=now_ns)
        self.requests.pop(request_id, None)
        self._open.pop(request_id, None)
        self._running.discard(request_id)

    def _known(self, request: Any) -> Watched:
        """What is known of a request; one that nobody announced comes now (versions without `on_new_request`)."""
        if request.request_id not in self.requests:
            self.came(request, time.monotonic_ns())
        return self.requests[request.request_id]


_TOKENS_OF: Final = {Tier.GPU: "tokens_gpu", Tier.HOST: "tokens_host", Tier.NVME: "tokens_nvme", Tier.REMOTE: "tokens_remote"}
_LAYERS_WAIT_NS: Final = 50_000
