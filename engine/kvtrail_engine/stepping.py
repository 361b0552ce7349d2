"""One scheduler iteration from its start to its end, and everything that becomes true with each."""

from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import StepId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import EvictReason, MissReason, PrefillReason

from kvtrail_engine.context import Context
from kvtrail_engine.executor import Executor, Sampled, Work
from kvtrail_engine.identity.mismatch import problem_of
from kvtrail_engine.residency import Residency
from kvtrail_engine.scheduler import Chunk, StepPlan
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.pool import Block, Copy, CopyState


class TokenListener(Protocol):
    """**Protocol:** hears of tokens when a step has ended; called on the engine's thread, all at the step's end time."""

    def first_token(self, sequence: Sequence, t_ns: int) -> None:
        """The prompt is computed and the first token is out."""
        ...

    def last_token(self, sequence: Sequence, t_ns: int) -> None:
        """All the tokens that were asked for are out."""
        ...


@dataclass(frozen=True, slots=True)
class InFlight:
    """A step on its way."""

    step: StepId
    plan: StepPlan
    started_ns: int
    deadline_ns: int


class Stepping:
    """Runs on the engine's thread. At most one step is in flight; its end is asked for, never waited for."""

    def __init__(self, context: Context, residency: Residency, executor: Executor, listener: TokenListener) -> None:
        self._context = context
        self._residency = residency
        self._executor = executor
        self._listener = listener
        self.in_flight: InFlight | None = None
        self.busy_ns = 0

    def start(self, plan: StepPlan) -> None:
        """Tell the step's start and submit its compute."""
        context, now_ns = self._context, self._context.clock.now_ns()
        step = context.ids.step()
        context.emit.step_started(step, now_ns)
        for sequence in plan.sequences:
            self._join(sequence, step, now_ns)
        for sequence in plan.decodes:
            if not sequence.is_decoding:
                sequence.is_decoding = True
                context.emit.decode_joined(sequence.handle.req, step, now_ns)
        cost_ns = context.settings.step.cost_ns(plan.prefill_tokens, len(plan.decodes))
        self.in_flight = InFlight(step, plan, now_ns, now_ns + cost_ns)
        self._executor.launch([*map(_prefill_work, plan.chunks), *map(_decode_work, plan.decodes)])

    def is_done(self) -> bool:
        """Whether the step in flight has been computed and its floor has passed."""
        flight = self.in_flight
        return flight is not None and self._context.clock.now_ns() >= flight.deadline_ns and self._executor.is_done()

    def finish(self) -> None:
        """Tell the step's end and all that it gave; precondition: `is_done`."""
        flight = self.in_flight
        assert flight is not None, "no step is in flight"
        self.in_flight = None
        now_ns = self._context.clock.now_ns()
        plan = flight.plan
        self.busy_ns += now_ns - flight.started_ns
        self._tell_chunks(flight, now_ns)
        prefill, decode = plan.prefill_tokens, len(plan.decodes)
        self._context.emit.step_finished(flight.step, prefill + decode, prefill, decode, self._executor.device_ns(), now_ns)
        self._context.estimates.observe_step(now_ns - flight.started_ns, prefill)
        for sequence in plan.sequences:
            sequence.is_in_step = False
        for chunk in plan.chunks:
            self._complete(chunk, now_ns)
        sampled = [chunk.sequence for chunk in plan.chunks if _is_last(chunk)]
        for sequence, token in zip([*sampled, *plan.decodes], self._executor.collect(), strict=True):
            self._take_token(sequence, token, flight.step, now_ns)

    def _join(self, sequence: Sequence, step: StepId, now_ns: int) -> None:
        """A sequence takes part: it is admitted the first time, and reads what it has not read yet."""
        sequence.is_in_step = True
        req, emit = sequence.handle.req, self._context.emit
        if not sequence.is_admitted:
            sequence.is_admitted = True
            emit.request_admitted(req, step, now_ns)
        for ns, copies in groupby(sequence.unread, key=lambda copy: copy.block.ns):
            read = list(copies)
            blocks, slots = [copy.block.id for copy in read], [copy.slot for copy in read]
            emit.emit_blocks(Kind.ATTENTION_READ, blocks, slots, t_ns=now_ns, req=req, tier=Tier.GPU, ns=ns)
        for copy in sequence.unread:
            self._context.prefetches.used(copy, req)
        sequence.unread.clear()

    def _tell_chunks(self, flight: InFlight, now_ns: int) -> None:
        """One event for each stretch of a prompt that was computed for one reason."""
        stretch: list[Chunk] = []
        for chunk in flight.plan.chunks:
            if stretch and not _continues(stretch[-1], chunk):
                self._tell_stretch(flight.step, stretch, now_ns)
                stretch = []
            stretch.append(chunk)
        if stretch:
            self._tell_stretch(flight.step, stretch, now_ns)

    def _tell_stretch(self, step: StepId, stretch: list[Chunk], now_ns: int) -> None:
        """Emit one stretch."""
        first = stretch[0]
        tokens = sum(chunk.tokens for chunk in stretch)
        start, _ = first.sequence.chunk(first.index)
        self._context.emit.prefill_chunk(first.sequence.handle.req, step, tokens, _reason(first), start, now_ns)

    def _complete(self, chunk: Chunk, now_ns: int) -> None:
        """A chunk is computed; a full block becomes a copy that others can use."""
        sequence = chunk.sequence
        sequence.todo.popleft()
        sequence.computed_tokens += chunk.tokens
        if chunk.index < len(sequence.blocks):
            self._publish(sequence, chunk.index, now_ns)

    def _publish(self, sequence: Sequence, index: int, now_ns: int) -> None:
        """Index the block; if another request was faster, use that one's copy, whose bits are the same."""
        gpu, block = self._context.gpu, sequence.blocks[index]
        if sequence.cancel_asked is not None:
            return
        copy = self._usable(block, now_ns)
        if copy is None:
            terms = sequence.handle.spec.terms(*sequence.chunk(index), now_ns)
            copy = Copy(block, Tier.GPU, sequence.slots[index], CopyState.READY, now_ns, terms=terms)
            gpu.insert(copy)
            self._tell_created(sequence, copy, now_ns)
            sequence.created.append(copy)
        elif copy.state is CopyState.READY and problem_of(copy, block, now_ns) is None:
            gpu.give_back(sequence.slots[index])
            sequence.slots[index] = copy.slot
        else:
            return
        self._residency.pin(copy, sequence.handle.req)
        sequence.held[index] = copy
        sequence.unread.append(copy)

    def _usable(self, block: Block, now_ns: int) -> Copy | None:
        """The block's gpu copy, after one that nobody may read has been put out of the way; it stays while it is in use."""
        copy = self._context.gpu.find(block.id)
        problem = None if copy is None else problem_of(copy, block, now_ns)
        if copy is None or problem is None or copy.refs or copy.state is CopyState.LOADING:
            return copy
        self._residency.evict(copy, EvictReason.EXPIRED if problem is MissReason.EXPIRED else EvictReason.ABORT)
        return None

    def _tell_created(self, sequence: Sequence, copy: Copy, now_ns: int) -> None:
        """Emit the creation of a block."""
        block = copy.block
        self._context.emit.block_created(
            block.id,
            Tier.GPU,
            copy.slot,
            block.ns,
            NO_U64 if block.parent is None else block.parent,
            sequence.handle.req,
            block.tokens,
            block.token_start,
            self._context.settings.block_bytes,
            block.dtype,
            copy.terms.priority,
            now_ns,
        )

    def _take_token(self, sequence: Sequence, sampled: Sampled, step: StepId, now_ns: int) -> None:
        """A token is out: perhaps the first, perhaps the last."""
        emit, req = self._context.emit, sequence.handle.req
        sequence.output.append(sampled.token)
        if sequence.first_token_ns is None:
            sequence.first_token_ns = now_ns
            sequence.first_logits = sampled.logits
            emit.request_first_token(req, step, now_ns)
            self._listener.first_token(sequence, now_ns)
        if len(sequence.output) >= sequence.handle.spec.output_tokens:
            if sequence.is_decoding:
                emit.decode_left(req, step, now_ns)
            self._listener.last_token(sequence, now_ns)


def _is_last(chunk: Chunk) -> bool:
    """Whether the prompt ends with this chunk, so that it gives a token."""
    return chunk.index == chunk.sequence.prompt_blocks - 1


def _reason(chunk: Chunk) -> PrefillReason:
    """Why a chunk is computed."""
    return chunk.sequence.reasons.get(chunk.index, PrefillReason.NEW)


def _continues(before: Chunk, chunk: Chunk) -> bool:
    """Whether two chunks belong to one stretch."""
    is_next = before.sequence is chunk.sequence and before.index + 1 == chunk.index
    return is_next and _reason(before) is _reason(chunk)


def _prefill_work(chunk: Chunk) -> Work:
    """The forward pass of a chunk."""
    sequence, spec = chunk.sequence, chunk.sequence.handle.spec
    start, stop = sequence.chunk(chunk.index)
    slots = np.array(sequence.slots[: chunk.index + 1], dtype=np.int64)
    return Work(spec.prompt[start:stop], start, slots, _is_last(chunk), keeps_logits=_is_last(chunk) and spec.keep_logits)


def _decode_work(sequence: Sequence) -> Work:
    """The forward pass of the token that came last."""
    start = sequence.prompt_tokens + len(sequence.output) - 1
    slots = np.array(sequence.slots[: start // sequence.block_tokens + 1], dtype=np.int64)
    return Work(np.array(sequence.output[-1:], dtype=np.int64), start, slots, is_sampled=True)
