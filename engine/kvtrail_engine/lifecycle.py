"""A request's way through the engine, from its arrival to its end, on the engine's thread."""

from typing import NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import NamespaceId, RequestId
from kvtrail_schema.reasons import CancelReason, FinishReason, RejectReason, WaitReason

from kvtrail_engine.admission import Admission
from kvtrail_engine.context import Context
from kvtrail_engine.hashing import blocks_of
from kvtrail_engine.identity.journal import Journal
from kvtrail_engine.lookup import Lookup
from kvtrail_engine.namespaces import Namespaces, namespace_of
from kvtrail_engine.prefetch import Prefetcher
from kvtrail_engine.prepare import Prepared, Preparer
from kvtrail_engine.request import Outcome, RequestHandle, RequestResult, RequestSpec, Retention
from kvtrail_engine.residency import Residency
from kvtrail_engine.restoring import Restoring
from kvtrail_engine.saving import Saving
from kvtrail_engine.scheduler import Scheduler
from kvtrail_engine.sequence import Phase, Sequence
from kvtrail_engine.tiers.pool import Block
from kvtrail_engine.tiers.transfer import Transfer
from kvtrail_engine.transfers import Transfers

_WAITS = {Prepared.NO_ROOM: WaitReason.CAPACITY, Prepared.QUEUE_FULL: WaitReason.BACKPRESSURE}


class Totals(NamedTuple):
    """What the engine has done since its start."""

    finished: int = 0
    cancelled: int = 0
    rejected: int = 0
    restored_host_blocks: int = 0
    restored_nvme_blocks: int = 0
    restored_remote_blocks: int = 0
    computed_tokens: int = 0


class Lifecycle:
    """Owns every sequence; hears from steps and loads what became of them."""

    def __init__(self, context: Context, scheduler: Scheduler, transfers: Transfers, key: bytes, journal: Journal) -> None:
        self._context = context
        self._scheduler = scheduler
        self._transfers = transfers
        self.key = key
        self.residency = Residency(context)
        self._restoring = Restoring(context, self.residency, transfers, self)
        self.namespaces = Namespaces(context, key, journal)
        self.lookup = Lookup(context, self.namespaces)
        self._preparer = Preparer(context, self.residency, self._restoring, self.lookup)
        self.saving = Saving(context, self.residency, transfers)
        self.prefetcher = Prefetcher(context, self.residency, self._restoring, transfers)
        self.admission = Admission(context, scheduler)
        self._sequences: dict[RequestId, Sequence] = {}
        self.totals = Totals()

    def blocks_of(self, spec: RequestSpec) -> tuple[Block, ...]:
        """The full blocks of a request's prompt."""
        identity = self.namespaces.identity(namespace_of(self._context.settings, spec))
        return blocks_of(self.key, identity, spec.prompt, self._context.settings.block_tokens)

    def arrive(self, handle: RequestHandle, arrived_ns: int) -> None:
        """A request came: tell it, and let it wait for the next step's planning."""
        spec, settings = handle.spec, self._context.settings
        identity = self.namespaces.identity(namespace_of(settings, spec))
        sequence = Sequence(handle, identity, arrived_ns, self.blocks_of(spec), settings.block_tokens)
        self._context.emit.request_arrived(handle.req, len(spec.prompt), identity.ns, spec.name, t_ns=arrived_ns)
        self._sequences[handle.req] = sequence
        if spec.supersedes is not None:
            self.cancel(spec.supersedes, CancelReason.SUPERSEDED)
        reason = self._why_never(sequence) or self._why_not_now(sequence)
        if reason is not None:
            self._reject(sequence, reason)
            return
        self._scheduler.wait(sequence, WaitReason.BUDGET, arrived_ns)
        self._scheduler.waiting.append(sequence)

    def prepare_waiting(self) -> None:
        """Give places in order of arrival; the first that gets none says why, for itself and for all behind it.

        A request that only its own tenant's quota holds back is passed by: it must not hold back the others.
        """
        waiting = list(self._scheduler.waiting)
        for place, sequence in enumerate(waiting):
            if self._is_at_quota(sequence):
                self._scheduler.wait(sequence, WaitReason.LIMIT, self._context.clock.now_ns())
                continue
            reason = self._prepare(sequence)
            if reason is not None:
                now_ns = self._context.clock.now_ns()
                for behind in waiting[place:]:
                    self._scheduler.wait(behind, reason, now_ns)
                return

    def prefetch_waiting(self) -> None:
        """Fetch ahead for the requests that got no place; costs a branch while that is off."""
        if self._context.settings.prefetch.is_on:
            self.prefetcher.turn(iter(self._scheduler.waiting), self._scheduler.ahead_tokens())

    def cancel(self, req: RequestId, reason: CancelReason = CancelReason.CLIENT) -> None:
        """Call a request off; one that is in a step ends when the step does."""
        sequence = self._sequences.get(req)
        if sequence is None:
            return
        sequence.cancel_asked = sequence.cancel_asked or reason
        if not sequence.is_in_step:
            self._cancel(sequence)

    def cancel_all(self) -> None:
        """Call everything off."""
        for req in list(self._sequences):
            self.cancel(req)

    def sweep_cancelled(self) -> None:
        """After a step: end those that were called off meanwhile."""
        for sequence in [s for s in self._sequences.values() if s.cancel_asked is not None and not s.is_in_step]:
            self._cancel(sequence)

    def revoke(self, meant: set[NamespaceId]) -> None:
        """The blocks of these namespaces were invalidated: whoever reads them is called off, and whoever waits begins anew."""
        for sequence in [s for s in self._sequences.values() if s.identity.ns in meant]:
            if sequence.phase is not Phase.WAITING:
                self.cancel(sequence.handle.req, CancelReason.SUPERSEDED)
                continue
            sequence.identity = self.namespaces.identity(sequence.identity.namespace)
            sequence.blocks = self.blocks_of(sequence.handle.spec)
            sequence.failures.clear()

    def fail_all(self, error: BaseException) -> None:
        """The engine ends by a defect: whoever waits for a result hears of it."""
        for sequence in self._sequences.values():
            sequence.handle.future.set_exception(error)
        self._sequences.clear()

    def first_token(self, sequence: Sequence, t_ns: int) -> None:
        """From now on a token a step; what was computed is written through."""
        del t_ns
        self._scheduler.leave(sequence)
        sequence.phase = Phase.DECODE
        self._scheduler.enter(sequence)
        if sequence.handle.spec.retention is Retention.STORE:
            self.saving.save_created(sequence)

    def last_token(self, sequence: Sequence, t_ns: int) -> None:
        """The request has all its tokens."""
        self._context.emit.request_finished(sequence.handle.req, len(sequence.output), FinishReason.LENGTH, t_ns)
        self._end(sequence, Outcome.FINISHED, t_ns)

    def loaded(self, sequence: Sequence, last: Transfer) -> None:
        """The wait for the restore is over: tell it, and wait for budget."""
        now_ns = self._context.clock.now_ns()
        waited_ns = now_ns - sequence.loading_since_ns
        req = sequence.handle.req
        self._context.emit.copy_waited(req, waited_ns, last.op, tier=last.slower, t_ns=now_ns)
        self._scheduler.leave(sequence)
        sequence.phase = Phase.PREFILL
        self._scheduler.enter(sequence)
        self._scheduler.wait(sequence, WaitReason.BUDGET, now_ns)

    def lost(self, sequence: Sequence) -> None:
        """A load failed: give up everything, and be first in line for another attempt."""
        now_ns = self._context.clock.now_ns()
        self._scheduler.leave(sequence)
        self._release(sequence, now_ns)
        sequence.phase = Phase.WAITING
        self._scheduler.wait(sequence, WaitReason.BUDGET, now_ns)
        self._scheduler.waiting.appendleft(sequence)

    def _why_never(self, sequence: Sequence) -> RejectReason | None:
        """Why a request can never run: it is empty, or larger than gpu, model or quota; None if it can."""
        spec, settings = sequence.handle.spec, self._context.settings
        length = len(spec.prompt) + spec.output_tokens
        is_empty = len(spec.prompt) == 0 or spec.output_tokens < 1
        if is_empty or length > settings.model.max_positions or sequence.total_blocks > settings.gpu.slots:
            return RejectReason.LIMIT
        quota_slots = settings.quota_slots(Tier.GPU, sequence.owner)
        is_over = quota_slots is not None and sequence.total_blocks > quota_slots
        return RejectReason.TENANT_QUOTA if is_over else None

    def _why_not_now(self, sequence: Sequence) -> RejectReason | None:
        """Whether its prompt is longer than is taken in for now, or so many wait that nothing may grow without a bound."""
        limit_tokens = self._context.degraded.limit_tokens
        if limit_tokens is not None and sequence.prompt_tokens > limit_tokens:
            return RejectReason.LIMIT
        is_full = len(self._scheduler.waiting) >= self._context.settings.step.max_waiting
        return RejectReason.BACKPRESSURE if is_full else None

    def _is_at_quota(self, sequence: Sequence) -> bool:
        """Whether a request would take more of the gpu than its tenant may have beside what the tenant uses now."""
        quota_slots = self._context.settings.quota_slots(Tier.GPU, sequence.owner)
        gpu, owner = self._context.gpu, sequence.owner
        return quota_slots is not None and gpu.held(owner) - gpu.idle(owner) + sequence.total_blocks > quota_slots

    def _prepare(self, sequence: Sequence) -> WaitReason | None:
        """Try to give one request its place; why not, if not."""
        if not self._scheduler.has_place:
            return WaitReason.LIMIT
        if not self.admission.admits(sequence):
            return WaitReason.BACKPRESSURE
        prepared = self._preparer.prepare(sequence, self._scheduler.ahead_tokens())
        if prepared is Prepared.REFUSED:
            self._reject(sequence, RejectReason.BACKPRESSURE)
            return None
        if prepared is not Prepared.DONE:
            return _WAITS[prepared]
        self._scheduler.waiting.remove(sequence)
        self.prefetcher.prepared(sequence)
        self._scheduler.enter(sequence)
        if sequence.phase is Phase.LOADING:
            sequence.loading_since_ns = sequence.loading_since_ns or self._context.clock.now_ns()
            self._scheduler.wait(sequence, WaitReason.KV_LOAD, sequence.loading_since_ns)
        else:
            self._scheduler.wait(sequence, WaitReason.BUDGET, self._context.clock.now_ns())
        return None

    def _reject(self, sequence: Sequence, reason: RejectReason) -> None:
        """End a request that cannot or shall not be served."""
        now_ns = self._context.clock.now_ns()
        self._context.emit.request_rejected(sequence.handle.req, reason, now_ns)
        self._end(sequence, Outcome.REJECTED, now_ns)

    def _cancel(self, sequence: Sequence) -> None:
        """End a request that nobody wants; its loads are called off where nobody else waits for them."""
        now_ns = self._context.clock.now_ns()
        unwanted = self._restoring.abandon(sequence)
        self._scheduler.leave(sequence)
        self._context.emit.request_cancelled(sequence.handle.req, sequence.cancel_asked or CancelReason.CLIENT, now_ns)
        self._end(sequence, Outcome.CANCELLED, now_ns)
        for transfer in unwanted:
            self._transfers.withdraw(transfer, now_ns)

    def _end(self, sequence: Sequence, outcome: Outcome, now_ns: int) -> None:
        """Give up what a sequence holds and answer its sender."""
        self._scheduler.leave(sequence)
        self._release(sequence, now_ns)
        self.residency.keep_gpu_room()
        sequence.phase = Phase.ENDED
        self.prefetcher.ended(sequence)
        del self._sequences[sequence.handle.req]
        self._count(sequence, outcome)
        spec = sequence.handle.spec
        sequence.handle.future.set_result(
            RequestResult(
                name=spec.name,
                req=sequence.handle.req,
                tenant=spec.tenant,
                outcome=outcome,
                prompt_tokens=len(spec.prompt),
                arrived_ns=sequence.arrived_ns,
                first_token_ns=sequence.first_token_ns,
                ended_ns=now_ns,
                output=tuple(sequence.output),
                restored=dict(sequence.restored),
                computed_tokens=sequence.computed_tokens,
                first_logits=sequence.first_logits,
            )
        )

    def _release(self, sequence: Sequence, now_ns: int) -> None:
        """Unpin its copies and return its other slots; it holds nothing afterwards."""
        for index, slot in enumerate(sequence.slots):
            copy = sequence.held.get(index)
            if copy is None:
                self._context.gpu.give_back(slot)
            else:
                self.residency.unpin(copy, now_ns, sequence.handle.req)
        sequence.slots.clear()
        sequence.held.clear()
        sequence.todo.clear()
        sequence.unread.clear()
        sequence.created.clear()
        sequence.reasons.clear()
        sequence.loading_since_ns = 0

    def _count(self, sequence: Sequence, outcome: Outcome) -> None:
        """Add a request to the totals."""
        totals = self.totals
        self.totals = Totals(
            finished=totals.finished + (outcome is Outcome.FINISHED),
            cancelled=totals.cancelled + (outcome is Outcome.CANCELLED),
            rejected=totals.rejected + (outcome is Outcome.REJECTED),
            restored_host_blocks=totals.restored_host_blocks + sequence.restored.get(Tier.HOST, 0),
            restored_nvme_blocks=totals.restored_nvme_blocks + sequence.restored.get(Tier.NVME, 0),
            restored_remote_blocks=totals.restored_remote_blocks + sequence.restored.get(Tier.REMOTE, 0),
            computed_tokens=totals.computed_tokens + sequence.computed_tokens,
        )
