"""Fetching ahead of need: for requests that wait for their place, and for sessions that are said to go on.

From nvme or the remote to host, where a load is quick from; or straight to the gpu while it has room that nobody wants. It
looks up before it makes room, and makes room on host alone, by letting go of copies that a slower tier has too. What it brought
to host stays there until it is used, given up, or past its deadline.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, PrefetchId, RequestId
from kvtrail_schema.reasons import (
    EvictReason,
    PrefetchCancelReason,
    PrefetchSkipReason,
    PrefetchWasteReason,
)

from kvtrail_engine.backpressure import QUEUE_FULL
from kvtrail_engine.context import Context
from kvtrail_engine.identity.mismatch import problem_of
from kvtrail_engine.prefetch_book import Issued
from kvtrail_engine.prefetch_window import Outlook, window
from kvtrail_engine.residency import Residency
from kvtrail_engine.restoring import Restoring
from kvtrail_engine.sequence import Sequence
from kvtrail_engine.tiers.block import Block, Copy, CopyState
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome
from kvtrail_engine.transfers import Transfers

_BAD = frozenset(
    {
        TransferOutcome.CHECKSUM,
        TransferOutcome.MISSING,
        TransferOutcome.VERSION,
        TransferOutcome.PERMISSION,
        TransferOutcome.EXPIRED,
    }
)
"""What proves that a source is of no use to anybody."""


@dataclass(slots=True)
class Candidate:
    """Blocks that will be wanted: whose, and when."""

    blocks: tuple[Block, ...]
    req: RequestId | None
    session: str | None
    use_ns: int
    deadline_ns: int
    until_ns: int = 0
    """A hint is forgotten then, and what it brought and nobody used is wasted."""
    fetched: set[tuple[BlockId, Tier]] = field(default_factory=set)
    """What was tried once is not tried again: whatever took it away would take it again."""
    told: set[tuple[BlockId, PrefetchSkipReason]] = field(default_factory=set)
    was_refused: bool = False
    """There was no room for it at the last try."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is fetched next for a candidate: sources in order, and where to."""

    sources: list[Copy]
    dst: Tier


class Prefetcher:
    """Runs on the engine's thread and never blocks; costs a branch a turn while it is off."""

    def __init__(self, context: Context, residency: Residency, restoring: Restoring, transfers: Transfers) -> None:
        self._context = context
        self._residency = residency
        self._restoring = restoring
        self._transfers = transfers
        self._settings = context.settings.prefetch
        self._book = context.prefetches
        self._book.on_end = self._let_go
        self._spent: deque[Copy] = deque(maxlen=max(context.host.slots, 1))
        self._host_is_full = False
        self._hints: dict[str, Candidate] = {}
        self._waiting: dict[RequestId, Candidate] = {}
        self._next_ns = 0
        self._degraded = False
        self._is_closing = False

    def sleep_ns(self, now_ns: int) -> int | None:
        """How long it has nothing to do of its own accord; None while there is nothing to fetch for."""
        is_idle = not self._settings.is_on or self._is_closing or not (self._hints or self._waiting or self._book.open_bytes)
        return None if is_idle else max(self._next_ns - now_ns, 0)

    def turn(self, sequences: Iterator[Sequence], ahead_tokens: int) -> None:
        """Once in a while: look after deadlines, then fetch for those that wait, the first ones first, and for hints."""
        now_ns = self._context.clock.now_ns()
        if not self._settings.is_on or self._is_closing or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + self._settings.interval_ns
        self._host_is_full = False
        self._review(now_ns)
        for sequence, _ in zip(sequences, range(self._settings.lookahead), strict=False):
            self._fetch(self._candidate(sequence, now_ns, ahead_tokens), now_ns)
        for hint in sorted(self._hints.values(), key=lambda each: each.use_ns):
            self._fetch(hint, now_ns)

    def hint(self, session: str, blocks: tuple[Block, ...], use_in_ns: int) -> None:
        """A session will go on with these blocks; an earlier hint for it is replaced."""
        now_ns = self._context.clock.now_ns()
        before = self._hints.pop(session, None)
        if before is not None:
            kept = {block.id for block in blocks}
            self._give_up_session(session, PrefetchCancelReason.SUPERSEDED, kept)
        use_ns = now_ns + use_in_ns
        grace_ns = self._settings.hint_grace_ns
        made = Candidate(blocks, None, session, use_ns, use_ns + self._settings.slack_ns, use_ns + grace_ns)
        if not self._settings.is_on or self._degraded:
            reason = PrefetchSkipReason.DEGRADED if self._settings.is_on else PrefetchSkipReason.DISABLED
            self._skip(made, blocks[:1], reason)
            return
        self._hints[session] = made
        self._next_ns = 0

    def forget(self, session: str) -> None:
        """A session will not go on."""
        if self._hints.pop(session, None) is not None:
            self._give_up_session(session, PrefetchCancelReason.REQUEST_GONE, set())

    def degrade(self, *, is_on: bool) -> None:
        """Fetch nothing ahead any more, or again; what waits is called off."""
        self._degraded = is_on
        if is_on:
            self._cancel_all(PrefetchCancelReason.DEGRADED)

    def close(self) -> None:
        """The engine ends: call off what waits, and give up what nobody used."""
        self._is_closing = True
        self._cancel_all(PrefetchCancelReason.SHUTDOWN)
        for entry in self._book.entries():
            self._book.give_up(entry, PrefetchWasteReason.NEVER_NEEDED)

    def prepared(self, sequence: Sequence) -> None:
        """A request has its place: what is still on its way to host comes too late for it."""
        for entry in self._of(sequence.handle.req):
            if entry.target.tier is Tier.HOST and not entry.is_ready:
                entry.doomed = entry.doomed or PrefetchWasteReason.TOO_LATE
                self._withdraw(entry.transfer, PrefetchCancelReason.SUPERSEDED)

    def ended(self, sequence: Sequence) -> None:
        """A request has ended: what it did not use of its own, and nobody else waits for, is given up."""
        self._waiting.pop(sequence.handle.req, None)
        is_gone = sequence.cancel_asked is not None
        wasted = PrefetchWasteReason.REQUEST_GONE if is_gone else PrefetchWasteReason.NEVER_NEEDED
        for entry in self._of(sequence.handle.req):
            if self._restoring.is_awaited(entry.target):
                entry.req = None
                continue
            if not entry.is_ready:
                self._withdraw(entry.transfer, PrefetchCancelReason.REQUEST_GONE)
            if self._book.find(entry.target) is entry:
                self._book.give_up(entry, wasted)

    def _of(self, req: RequestId) -> list[Issued]:
        """A request's open prefetches; none at all costs one look."""
        return [entry for entry in self._book.entries() if entry.req == req] if self._book.open_bytes else []

    def _candidate(self, sequence: Sequence, now_ns: int, ahead_tokens: int) -> Candidate:
        """A request that waits: it will be used when those ahead are computed, at the earliest."""
        known = self._waiting.get(sequence.handle.req)
        if known is None:
            deadline_ns = now_ns + self._settings.deadline_ns
            known = Candidate((), sequence.handle.req, None, now_ns, deadline_ns)
            self._waiting[sequence.handle.req] = known
        known.blocks = sequence.blocks[: sequence.reusable_blocks]
        ahead_ns = self._context.estimates.recompute_ns(0, ahead_tokens)
        known.use_ns = now_ns + max(ahead_ns, self._settings.least_wait_ns)
        return known

    def _review(self, now_ns: int) -> None:
        """Deadlines and hints that have run out."""
        for entry in self._book.entries():
            if entry.deadline_ns and now_ns > entry.deadline_ns and not entry.is_ready:
                self._book.miss_deadline(entry, now_ns)
                if not self._restoring.is_awaited(entry.target):
                    self._withdraw(entry.transfer, PrefetchCancelReason.DEADLINE)
            if entry.deadline_ns and now_ns > entry.deadline_ns:
                self._let_go(entry)
        for session in [session for session, hint in self._hints.items() if now_ns > hint.until_ns]:
            del self._hints[session]
            for entry in self._book.entries():
                if entry.session == session:
                    self._book.give_up(entry, PrefetchWasteReason.NEVER_NEEDED)

    def _fetch(self, candidate: Candidate, now_ns: int) -> None:
        """Fetch the next blocks of a candidate, as many as are worth it."""
        if now_ns > candidate.deadline_ns:
            return
        dst = self._destination(candidate)
        is_in_vain = dst is Tier.HOST and self._host_is_full and candidate.was_refused
        if is_in_vain or dst in self._context.degraded.closed:
            return
        sources = list(self._sources(candidate, dst, now_ns))
        if not sources:
            return
        if self._degraded:
            self._skip(candidate, [source.block for source in sources[:1]], PrefetchSkipReason.DEGRADED)
            return
        src = sources[0].tier
        sources = [source for source in sources if source.tier is src]
        room = window(self._outlook(candidate, src, len(sources), now_ns))
        if room.limit is not None:
            self._skip(candidate, [sources[0].block], room.limit)
            return
        size = self._context.settings.op_blocks
        chosen = sources[: room.blocks]
        for start in range(0, len(chosen), size):
            if not self._issue(candidate, Plan(chosen[start : start + size], dst), now_ns):
                return

    def _destination(self, candidate: Candidate) -> Tier:
        """The gpu while it has slots that nobody wants, for all of the candidate's blocks; else host."""
        gpu, settings = self._context.gpu, self._context.settings
        spare = gpu.free - max(settings.gpu_low_slots, self._settings.gpu_reserve_slots)
        owner = candidate.blocks[0].owner if candidate.blocks else ""
        fits = spare >= len(candidate.blocks) <= self._residency.room_in_quota(Tier.GPU, owner)
        return Tier.GPU if fits else Tier.HOST

    def _sources(self, candidate: Candidate, dst: Tier, now_ns: int) -> Iterator[Copy]:
        """What has to be moved of the prefix, in order, up to the first block that no tier has. Changes nothing."""
        for block in candidate.blocks:
            found = [copy for pool in self._context.pools.values() if (copy := pool.find(block.id)) is not None]
            if any(copy.tier <= dst for copy in found) or (block.id, dst) in candidate.fetched:
                continue
            readable = {pool.tier for pool in self._context.readable}
            ready = [copy for copy in found if copy.tier in readable and copy.state is CopyState.READY]
            source = next((copy for copy in ready if problem_of(copy, block, now_ns) is None), None)
            if source is None:
                return
            yield source

    def _outlook(self, candidate: Candidate, src: Tier, blocks: int, now_ns: int) -> Outlook:
        """What the window follows from, now."""
        settings, costs = self._context.settings, self._context.estimates
        return Outlook(
            left_ns=candidate.use_ns - now_ns,
            wait_ns=costs.wait_ns(src, self._transfers.waiting(src), settings.workers_of(src)),
            block_ns=costs.block_ns(src),
            left_blocks=blocks,
            room_bytes=self._settings.byte_cap - self._book.open_bytes,
            block_bytes=settings.block_bytes,
            most_blocks=self._settings.window,
        )

    def _issue(self, candidate: Candidate, plan: Plan, now_ns: int) -> bool:
        """One op; False where no more are to be tried now."""
        slower, blocks = plan.sources[0].tier, [source.block for source in plan.sources]
        if self._context.pressure.is_on(QUEUE_FULL[slower]) or not self._transfers.has_room(slower, 1):
            self._skip(candidate, blocks[:1], PrefetchSkipReason.BACKPRESSURE)
            return False
        fitting = plan.sources[: self._room_on_host()] if plan.dst is Tier.HOST else plan.sources
        made = [self._row(source, plan.dst, now_ns, candidate.req) for source in fitting]
        rows = [row for row in made if row is not None]
        candidate.was_refused = len(rows) < len(blocks)
        if candidate.was_refused:
            self._skip(candidate, blocks[len(rows) : len(rows) + 1], PrefetchSkipReason.NO_ROOM)
        if rows:
            self._queue(candidate, rows, now_ns)
        return len(rows) == len(blocks)

    def _room_on_host(self) -> int:
        """Slots of the host that may still be fetched into: its share, beside what is there and not used yet."""
        return max(int(self._context.host.slots * self._settings.host_share) - self._book.pending(Tier.HOST), 0)

    def _row(self, source: Copy, dst: Tier, now_ns: int, req: RequestId | None) -> Row | None:
        """A place for a block, and a reference on where it comes from; None where there is no room."""
        pool, owner = self._context.pools[dst], source.block.owner
        if self._residency.room_in_quota(dst, owner) < 1:
            return None
        if dst is Tier.HOST and pool.free <= self._context.settings.host_low_slots and not self._makes_room():
            return None
        slot = pool.take(owner)
        if slot is None:
            return None
        target = source.replica(dst, slot, now_ns)
        pool.insert(target)
        self._residency.pin(source, req)
        return Row(source.block, source, target)

    def _makes_room(self) -> bool:
        """Whether a host copy could be let go of; where none could be once, none is looked for again in this turn."""
        victim = None if self._host_is_full else self._victim()
        self._host_is_full = victim is None
        if victim is not None:
            self._residency.evict(victim, EvictReason.PREFETCH_ROOM)
        return victim is not None

    def _victim(self) -> Copy | None:
        """What was fetched for nobody, the oldest first; else a copy whose turn it is soon, which no prefetch brought for
        somebody else. Nvme has either of them too.
        """
        while self._spent:
            copy = self._spent.popleft()
            if self._context.host.find(copy.block.id) is copy and copy.refs == 0 and self._is_spare(copy):
                return copy
        soon = self._context.host.victims(self._context.settings.op_blocks)
        return next((copy for copy in soon if self._is_spare(copy)), None)

    def _is_spare(self, copy: Copy) -> bool:
        """Whether nvme has the block of a host copy, and no prefetch that is not over brought it."""
        stored = self._context.nvme.find(copy.block.id)
        return self._book.find(copy) is None and stored is not None and stored.state is CopyState.READY

    def _queue(self, candidate: Candidate, rows: list[Row], now_ns: int) -> None:
        """Issue one op; its queue had room."""
        prefetch = self._context.ids.prefetch()
        on_end = self._restoring.fetched if rows[0].target.tier is Tier.GPU else self._host_ended
        transfer = self._transfers.queue(rows, now_ns, on_end, candidate.req, prefetch=prefetch)
        assert transfer is not None, f"prefetch {prefetch}: room in the queue was promised"
        if transfer.dst is Tier.GPU:
            self._restoring.adopt(transfer)
        candidate.fetched.update((row.block.id, transfer.dst) for row in rows)
        self._book.issue((self._entry(candidate, prefetch, transfer, row) for row in rows), now_ns)

    def _entry(self, candidate: Candidate, prefetch: PrefetchId, transfer: Transfer, row: Row) -> Issued:
        """One block for the book."""
        upstream = self._book.find(row.source)
        return Issued(
            prefetch, row.target, transfer, candidate.req, candidate.session, candidate.deadline_ns, upstream=upstream
        )

    def _host_ended(self, transfer: Transfer) -> None:
        """A read into host has ended: what came stays for whom it was fetched."""
        is_done = transfer.outcome is TransferOutcome.DONE
        if is_done:
            self._context.estimates.observe_load(transfer)
        for row in transfer.rows:
            if is_done:
                self._residency.ready(row.target, transfer.ended_ns)
        self._book.ended(transfer)
        for row in transfer.rows:
            if not is_done:
                self._residency.drop(row.target)
            elif (entry := self._book.find(row.target)) is not None:
                entry.is_held = True
                self._residency.pin(row.target, entry.req)
            self._residency.unpin(row.source, transfer.ended_ns, transfer.req)
            if transfer.outcome_of(row) in _BAD and row.source.refs == 0:
                self._residency.evict(row.source, EvictReason.ABORT)

    def _let_go(self, entry: Issued) -> None:
        """A copy that was kept for somebody is like any other from here on; one of no use is the first to leave."""
        if entry.doomed is not None and entry.is_ready and entry.target.tier is Tier.HOST:
            self._spent.append(entry.target)
        if entry.is_held:
            entry.is_held = False
            self._residency.unpin(entry.target, self._context.clock.now_ns(), entry.req)

    def _withdraw(self, transfer: Transfer, reason: PrefetchCancelReason) -> None:
        """Call an op off."""
        self._book.cancelling(transfer, reason)
        self._transfers.withdraw(transfer, self._context.clock.now_ns())

    def _give_up_session(self, session: str, reason: PrefetchCancelReason, kept: set[BlockId]) -> None:
        """What a hint brought, or is bringing, is not wanted, but for blocks that its successor wants too."""
        for entry in self._book.entries():
            if entry.session != session or entry.target.block.id in kept or self._restoring.is_awaited(entry.target):
                continue
            if entry.is_ready:
                wasted = reason is PrefetchCancelReason.SUPERSEDED
                self._book.give_up(entry, PrefetchWasteReason.SUPERSEDED if wasted else PrefetchWasteReason.REQUEST_GONE)
            elif not kept & {row.block.id for row in entry.transfer.rows}:
                self._withdraw(entry.transfer, reason)

    def _cancel_all(self, reason: PrefetchCancelReason) -> None:
        """Call off every prefetch that has not begun and that no request waits for."""
        for entry in self._book.entries():
            if not entry.is_ready and not self._restoring.is_awaited(entry.target):
                self._withdraw(entry.transfer, reason)

    def _skip(self, candidate: Candidate, blocks: tuple[Block, ...] | list[Block], reason: PrefetchSkipReason) -> None:
        """Tell that a block is not fetched; once for each reason."""
        for block in blocks:
            if (block.id, reason) not in candidate.told:
                candidate.told.add((block.id, reason))
                prefetch = self._context.ids.prefetch()
                self._context.emit.prefetch_skipped(prefetch, block.id, reason, block.ns)
