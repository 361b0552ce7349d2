"""What the inner connector moves: loads from the scheduler's order to their end, saves, and who stood still for them.

A load is queued when its blocks are given, in service from the worker's call that starts it, and ends where that call ends, or
where a worker says that it arrived. What lies between is the inner connector's: its own queue is part of `io`, since nobody
outside it can see where that ends.
"""

from collections.abc import Iterable
from typing import Final

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, OpId, StepId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import ErrorReason, PrefillReason, SwapInFailReason

from kvtrail_agent.attach.vllm_pool import Residents
from kvtrail_agent.attach.vllm_request import Load, Watched
from kvtrail_agent.attach.vllm_worker import ABSENT, StepTimes

SHORTEST_WAIT_NS: Final = 50_000
"""Calls that take less wait for nothing: it is what they cost themselves."""


class Loads:
    """Transfers of one scheduler; used by its thread. `saves_at_once`: saving is done when its call returns."""

    def __init__(self, emit: Emitter, residents: Residents, tier: Tier, bytes_a_block: int, *, saves_at_once: bool) -> None:
        self._emit = emit
        self._residents = residents
        self.tier = tier
        self._bytes = bytes_a_block
        self._saves_at_once = saves_at_once
        self._next_op = 0
        self._sends: dict[str, tuple[OpId, Watched, int]] = {}

    def _op(self) -> OpId:
        """The next number of an op."""
        self._next_op += 1
        return OpId(self._next_op)

    def queue(self, watched: Watched, load: Load) -> None:
        """A load was ordered."""
        watched.load = load
        self._emit.emit_blocks(
            Kind.SWAP_IN_QUEUED,
            load.blocks,
            load.slots,
            t_ns=load.queued_ns,
            op=load.op,
            src=load.tier,
            dst=Tier.GPU,
            bytes=self._bytes,
            req=watched.req,
            ns=watched.ns,
        )

    def new_load(
        self, tier: Tier, blocks: list[BlockId], slots: list[int], tokens: int, now_ns: int, *, is_async: bool
    ) -> Load:
        """A load that was not told yet."""
        return Load(self._op(), tier, blocks, slots, tokens, now_ns, is_async)

    def loaded(self, watched: Watched, end_ns: int, bad_slots: frozenset[int]) -> None:
        """A load ended; blocks in bad slots did not arrive."""
        load = watched.load
        if load is None:
            return
        watched.load = None
        pairs = list(zip(load.blocks, load.slots, strict=True))
        good = [(block, slot) for block, slot in pairs if slot not in bad_slots]
        bad = [block for block, slot in pairs if slot in bad_slots]
        parts = self._parts(load, end_ns)
        fields = {"op": load.op, "src": load.tier, "dst": Tier.GPU, "bytes": self._bytes, "req": watched.req, "ns": watched.ns}
        if bad:
            self._emit.emit_blocks(Kind.SWAP_IN_FAILED, bad, t_ns=end_ns, reason=SwapInFailReason.IO, **parts, **fields)
            self._failed(watched, load)
        if good:
            blocks, slots = [block for block, _ in good], [slot for _, slot in good]
            self._emit.emit_blocks(Kind.SWAP_IN_LOADED, blocks, slots, t_ns=end_ns, **({} if bad else parts), **fields)
            self._residents.there(blocks, slots, watched.ns)

    @staticmethod
    def _parts(load: Load, end_ns: int) -> dict[str, int]:
        """The parts of a load that were seen; none where its start was not."""
        if not load.queued_ns <= load.begun_ns <= end_ns or not load.begun_ns:
            return {}
        return {"queue_ns": load.begun_ns - load.queued_ns, "io_ns": end_ns - load.begun_ns}

    def _failed(self, watched: Watched, load: Load) -> None:
        """Blocks of a load did not arrive; vLLM does not say why."""
        watched.prefill_reason, watched.outer = PrefillReason.LOAD_FAILED, (0, 0)
        self._emit.error(ErrorReason.IO, tier=load.tier, op=load.op, req=watched.req, text="load failed inside the connector")

    def stood_still(self, batch: Iterable[Watched], op: OpId | None, wait_ns: int, end_ns: int, step: StepId) -> None:
        """Every request of a step waited for a copy; `op` where one is known to be it."""
        if wait_ns < SHORTEST_WAIT_NS:
            return
        for watched in batch:
            own = watched.load.op if watched.load is not None else op
            self._emit.copy_waited(watched.req, wait_ns, NO_U64 if own is None else own, step, self.tier, t_ns=end_ns)

    def saved(self, batch: list[Watched], times: StepTimes, step: StepId) -> None:
        """What saving took in a step. Its pieces between layers are laid end to end, up to the end of the last."""
        if times.save_ns < SHORTEST_WAIT_NS or times.save_end_ns == ABSENT:
            return
        op = None
        if self._saves_at_once:
            op = self._op()
            req = batch[0].req if len(batch) == 1 else NO_U64
            begin_ns = times.save_end_ns - times.save_ns
            self._emit.swap_out_queued(op, Tier.GPU, self.tier, req=req, t_ns=begin_ns)
            self._emit.swap_out_written(op, Tier.GPU, self.tier, io_ns=times.save_ns, req=req, t_ns=times.save_end_ns)
        self.stood_still(batch, op, times.save_ns, times.save_end_ns, step)

    def sending(self, request_id: str, watched: Watched, slots: int, now_ns: int) -> None:
        """A request ended and its blocks stay until they are saved or sent."""
        op = self._op()
        self._sends[request_id] = (op, watched, self._bytes * slots)
        self._emit.swap_out_queued(op, Tier.GPU, self.tier, req=watched.req, ns=watched.ns, t_ns=now_ns)

    def sent(self, request_id: str, now_ns: int) -> None:
        """The blocks of an ended request are saved or sent."""
        known = self._sends.pop(request_id, None)
        if known is not None:
            op, watched, size = known
            self._emit.swap_out_written(op, Tier.GPU, self.tier, bytes=size, req=watched.req, ns=watched.ns, t_ns=now_ns)

    @property
    def pending_sends(self) -> int:
        """Ended requests whose blocks are not free yet."""
        return len(self._sends)
