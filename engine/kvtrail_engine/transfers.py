"""The life of an op as the engine's thread sees it: queued, started, ended, each told once a row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar, cast

from kvtrail_schema.absent import NO_U64
from kvtrail_schema.block_rows import FIRST_ROW_ONLY, PARTS
from kvtrail_schema.enums import Path, Tier
from kvtrail_schema.identity import OpId, PrefetchId, RequestId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import ErrorReason, SwapInFailReason, SwapOutFailReason

from kvtrail_engine.context import Context
from kvtrail_engine.tiers.queue import TransferQueue
from kvtrail_engine.tiers.transfer import Estimates, Row, Transfer, TransferOutcome

OnEnd = Callable[[Transfer], None]
SixParts = tuple[int, int, int, int, int, int]

_IN_FAILED = {
    TransferOutcome.CHECKSUM: SwapInFailReason.CHECKSUM,
    TransferOutcome.VERSION: SwapInFailReason.VERSION,
    TransferOutcome.PERMISSION: SwapInFailReason.PERMISSION,
    TransferOutcome.EXPIRED: SwapInFailReason.EXPIRED,
    TransferOutcome.MISSING: SwapInFailReason.MISSING,
    TransferOutcome.IO: SwapInFailReason.IO,
    TransferOutcome.NO_SPACE: SwapInFailReason.IO,
    TransferOutcome.TIMEOUT: SwapInFailReason.TIMEOUT,
    TransferOutcome.LOST: SwapInFailReason.LOST,
    TransferOutcome.CANCELLED: SwapInFailReason.CANCELLED,
}
_OUT_FAILED = {
    TransferOutcome.CHECKSUM: SwapOutFailReason.CHECKSUM,
    TransferOutcome.VERSION: SwapOutFailReason.VERSION,
    TransferOutcome.PERMISSION: SwapOutFailReason.PERMISSION,
    TransferOutcome.EXPIRED: SwapOutFailReason.EXPIRED,
    TransferOutcome.MISSING: SwapOutFailReason.MISSING,
    TransferOutcome.IO: SwapOutFailReason.IO,
    TransferOutcome.NO_SPACE: SwapOutFailReason.NO_SPACE,
    TransferOutcome.TIMEOUT: SwapOutFailReason.TIMEOUT,
    TransferOutcome.LOST: SwapOutFailReason.LOST,
    TransferOutcome.CANCELLED: SwapOutFailReason.CANCELLED,
}
_ERROR = {
    TransferOutcome.CHECKSUM: ErrorReason.CHECKSUM,
    TransferOutcome.VERSION: ErrorReason.CHECKSUM,
    TransferOutcome.PERMISSION: ErrorReason.PERMISSION,
    TransferOutcome.MISSING: ErrorReason.IO,
    TransferOutcome.IO: ErrorReason.IO,
    TransferOutcome.NO_SPACE: ErrorReason.NO_SPACE,
    TransferOutcome.TIMEOUT: ErrorReason.TIMEOUT,
    TransferOutcome.LOST: ErrorReason.IO,
}


T = TypeVar("T", bound=int)


def _absent(value: T | None) -> T:
    """A 64-bit value, or the number that says there is none."""
    return cast("T", NO_U64) if value is None else value


class Transfers:
    """Runs on the engine's thread and never blocks; every event of an op is emitted here, with the times of its worker."""

    def __init__(self, context: Context, queues: Mapping[Tier, TransferQueue], *, pinned: bool) -> None:
        self._context = context
        self._queues = queues
        self._pinned = pinned
        self._on_end: dict[OpId, tuple[Transfer, OnEnd]] = {}

    def has_room(self, tier: Tier, ops: int) -> bool:
        """Whether a tier's queue takes so many more ops."""
        return self._queues[tier].has_room(ops)

    def waiting(self, tier: Tier) -> int:
        """Ops that wait in a tier's queue."""
        return self._queues[tier].statistics().waiting

    @property
    def in_flight(self) -> int:
        """Ops that have not ended."""
        return len(self._on_end)

    def find(self, op: OpId) -> Transfer | None:
        """An op that has not ended."""
        known = self._on_end.get(op)
        return None if known is None else known[0]

    def queue(
        self,
        rows: Sequence[Row],
        now_ns: int,
        on_end: OnEnd,
        req: RequestId | None = None,
        estimates: Estimates | None = None,
        *,
        prefetch: PrefetchId | None = None,
    ) -> Transfer | None:
        """Queue one op for these rows and tell it; None, and nothing is told, where the queue is full.

        `on_end` is called on this thread after the op's end was told, whatever its outcome.
        """
        src, dst = rows[0].source.tier, rows[0].target.tier
        op, known = self._context.ids.op(), estimates or Estimates()
        transfer = Transfer(op, src, dst, tuple(rows), now_ns, req, known, prefetch)
        if not self._queues[transfer.slower].offer_nowait(transfer):
            return None
        self._on_end[transfer.op] = (transfer, on_end)
        self._tell_queued(transfer)
        return transfer

    def withdraw(self, transfer: Transfer, now_ns: int) -> None:
        """Nobody wants an op any more. One that waits ends now; one that is in service ends before its next block."""
        transfer.stop.set()
        if self._queues[transfer.slower].withdraw(transfer):
            transfer.outcome = TransferOutcome.CANCELLED
            transfer.started_ns = transfer.ended_ns = now_ns
            self.ended(transfer)

    def started(self, transfer: Transfer) -> None:
        """A worker took the op; tell it with the worker's time."""
        kind = Kind.SWAP_OUT_STARTED if transfer.is_write else Kind.SWAP_IN_STARTED
        self._tell_rows(kind, transfer, transfer.started_ns, _of_namespace, {"prefetch": _absent(transfer.prefetch)})

    def ended(self, transfer: Transfer) -> None:
        """A worker has done with the op; tell its end, then let its owner draw the consequences."""
        _, on_end = self._on_end.pop(transfer.op)
        if transfer.outcome is TransferOutcome.DONE:
            self._tell_done(transfer)
        else:
            self._tell_failed(transfer)
        on_end(transfer)

    def _tell_queued(self, transfer: Transfer) -> None:
        """One row a block; the estimates stand on the first one."""
        depth = {"depth": transfer.depth}
        if transfer.is_write:
            self._tell_rows(Kind.SWAP_OUT_QUEUED, transfer, transfer.queued_ns, _of_cause, depth)
            return
        told = transfer.estimates
        once = {
            "restore_estimate_ns": _absent(told.restore_ns),
            "recompute_estimate_ns": _absent(told.recompute_ns),
            "keep_estimate_ns": _absent(told.keep_ns),
        }
        fields = depth | {"prefetch": _absent(transfer.prefetch)} | once
        self._tell_rows(Kind.SWAP_IN_QUEUED, transfer, transfer.queued_ns, _of_cause, fields)

    def _tell_done(self, transfer: Transfer) -> None:
        """The closing rows; the six parts stand on the first one."""
        parts = dict(zip(PARTS, next(_parts_by_row(transfer)), strict=True))
        fields: dict[str, int] = {"path": self._path(transfer), "pinned": self._pinned, **parts}
        if transfer.is_write:
            self._tell_rows(Kind.SWAP_OUT_WRITTEN, transfer, transfer.ended_ns, _of_length, fields)
        else:
            fields["prefetch"] = _absent(transfer.prefetch)
            self._tell_rows(Kind.SWAP_IN_LOADED, transfer, transfer.ended_ns, _of_length, fields)

    def _tell_rows(
        self,
        kind: Kind,
        transfer: Transfer,
        t_ns: int,
        by_row: Callable[[Row], dict[str, int]],
        fields: Mapping[str, int],
    ) -> None:
        """The rows of an op: by one call, or where they differ in more than block and slot, by one a stretch that agrees."""
        for same, rows in groupby(transfer.rows, key=by_row):
            stretch = list(rows)
            self._context.emit.emit_blocks(
                kind,
                [row.block.id for row in stretch],
                [row.target.slot for row in stretch],
                t_ns=t_ns,
                op=transfer.op,
                src=transfer.src,
                dst=transfer.dst,
                bytes=self._context.settings.block_bytes,
                req=_absent(transfer.req),
                **fields,
                **same,
            )
            fields = {name: value for name, value in fields.items() if name not in FIRST_ROW_ONLY}

    def _tell_failed(self, transfer: Transfer) -> None:
        """The failing rows, and the error unless the op was called off."""
        for parts, row in zip(_parts_by_row(transfer), transfer.rows, strict=True):
            if transfer.is_write:
                self._tell_write_failed(transfer, row, parts)
            else:
                self._tell_read_failed(transfer, row, parts)
        if (error := _ERROR.get(transfer.outcome)) is not None:
            req = _absent(transfer.req)
            self._context.emit.error(error, transfer.slower, transfer.op, req, transfer.detail, transfer.ended_ns)

    def _tell_write_failed(self, transfer: Transfer, row: Row, parts: SixParts) -> None:
        """A row of an op to a slower tier."""
        self._context.emit.swap_out_failed(
            transfer.op,
            transfer.src,
            transfer.dst,
            _OUT_FAILED[transfer.outcome_of(row)],
            row.block.id,
            self._context.settings.block_bytes,
            _absent(transfer.req),
            row.block.ns,
            *parts,
            t_ns=transfer.ended_ns,
        )

    def _tell_read_failed(self, transfer: Transfer, row: Row, parts: SixParts) -> None:
        """A row of an op to a faster tier."""
        self._context.emit.swap_in_failed(
            transfer.op,
            transfer.src,
            transfer.dst,
            _IN_FAILED[transfer.outcome_of(row)],
            row.block.id,
            self._context.settings.block_bytes,
            _absent(transfer.req),
            _absent(transfer.prefetch),
            row.block.ns,
            *parts,
            t_ns=transfer.ended_ns,
        )

    def _path(self, transfer: Transfer) -> Path:
        """The way that the bytes took."""
        if transfer.slower is Tier.HOST:
            return Path.DMA
        if transfer.slower is Tier.REMOTE:
            return Path.SOCKET
        return Path.BOUNCE if transfer.dst is Tier.GPU else Path.POSIX


def _of_namespace(row: Row) -> dict[str, int]:
    """What a row has beside its block and slot: whose it is."""
    return {"ns": row.block.ns}


def _of_cause(row: Row) -> dict[str, int]:
    """Whose it is, and what made it happen."""
    return {"ns": row.block.ns, "cause": _absent(row.cause)}


def _of_length(row: Row) -> dict[str, int]:
    """Whose it is, and how long."""
    return {"ns": row.block.ns, "tokens": row.block.tokens}


def _parts_by_row(transfer: Transfer) -> Iterator[SixParts]:
    """The six parts for the first row, none for the others; they add up to the time from queued to ended."""
    parts = transfer.parts
    queue_ns = transfer.started_ns - transfer.queued_ns
    yield queue_ns, parts.alloc_ns, parts.submit_ns, parts.io_ns, parts.copy_ns, parts.sync_ns
    for _ in transfer.rows[1:]:
        yield NO_U64, NO_U64, NO_U64, NO_U64, NO_U64, NO_U64
