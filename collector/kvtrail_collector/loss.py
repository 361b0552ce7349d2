"""The balance of every stream: produced = stored + dropped + in flight, and what is left is an alarm (EVENTS §4).

Pure computation over the books; runs anywhere, in time linear in the number of holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kvtrail_schema.batch import DropRange, name_of
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

from kvtrail_collector.loss_shapes import DropCount, Loss, StreamLoss
from kvtrail_collector.store.account import Account
from kvtrail_collector.store.drops import is_exact
from kvtrail_collector.store.ranges import RangeSet, SeqRange, holes, merged

FRESH_NS: Final = 5_000_000_000
"""How long after the last word from a stream its tail may still be on the way."""


_Place = tuple[str, str]


class _Explained(NamedTuple):
    """Holes that declarations cover, counted, and the holes that are left."""

    dropped: tuple[DropCount, ...]
    left: RangeSet


def loss_of(accounts: Iterable[Account], now_wall_ns: int, device: str | None = None) -> Loss:
    """The balance now, in the order of the streams' names."""
    ordered = sorted(accounts, key=lambda account: account.stream)
    streams = tuple(_stream_loss(account, now_wall_ns) for account in ordered)
    return Loss(streams=streams, balanced=all(stream.unaccounted == 0 for stream in streams), device=device)


def _stream_loss(account: Account, now_wall_ns: int) -> StreamLoss:
    """The balance of one stream."""
    declared = max((drop.last_seq for drop in account.drops), default=0)
    known = max(account.stored.highest, declared)
    produced = max(account.marks.produced, known)
    missing = holes(account.stored, produced)
    dropped, left = _explain(missing, account.drops)
    tail = RangeSet()
    if abs(now_wall_ns - account.marks.heard_wall_ns) < FRESH_NS:
        tail = left.subtract(RangeSet((SeqRange(1, known),) if known else ()))
    gaps = left.subtract(tail)
    return StreamLoss(
        engine=account.stream.engine,
        epoch=account.stream.epoch,
        rank=account.stream.rank,
        produced=produced,
        stored=account.stored.size,
        dropped=dropped,
        in_flight=tail.size,
        unaccounted=gaps.size,
        gaps=tuple((first, last) for first, last in gaps),
        lost_before_stored=_lost_before_stored(account, missing),
    )


def _lost_before_stored(account: Account, missing: RangeSet) -> int:
    """How many seqs were lost before the first one that is still stored, where retention moved that one; 0 without it."""
    expired = account.expired
    if not expired.size:
        return 0
    begin = next(iter(account.stored), SeqRange(expired.highest + 1, 0)).first
    return sum(min(last + 1, begin) - first for first, last in missing.subtract(expired) if first < begin)


def _explain(missing: RangeSet, drops: Sequence[DropRange]) -> _Explained:
    """Count each hole once, exact declarations before sparse ones. A seq that is stored after all is no hole, so no drop."""
    counts: dict[_Place, int] = {}
    left = missing
    for place, declared in _exact_by_place(drops).items():
        covered = left.intersect(declared)
        counts[place] = covered.size
        left = left.subtract(covered)
    for drop in (one for one in drops if not is_exact(one)):
        covered = _first(left.intersect(RangeSet((SeqRange(drop.first_seq, drop.last_seq),))), drop.count)
        counts[_place(drop)] = counts.get(_place(drop), 0) + covered.size
        left = left.subtract(covered)
    return _Explained(tuple(DropCount(*place, count) for place, count in counts.items() if count), left)


def _place(drop: DropRange) -> _Place:
    """Stage and reason, in words."""
    return (name_of(Stage, drop.stage), name_of(DropReason, drop.reason))


def _exact_by_place(drops: Sequence[DropRange]) -> dict[_Place, RangeSet]:
    """What is declared dropped without exception, in order of stage and reason."""
    spans: dict[_Place, list[SeqRange]] = {}
    for drop in drops:
        if is_exact(drop):
            spans.setdefault(_place(drop), []).append(SeqRange(drop.first_seq, drop.last_seq))
    return {place: merged(parts) for place, parts in spans.items()}


def _first(numbers: RangeSet, count: int) -> RangeSet:
    """The `count` smallest numbers: a sparse declaration says how many of its span were dropped, not which."""
    taken: list[SeqRange] = []
    for first, last in numbers:
        if count <= 0:
            break
        taken.append(SeqRange(first, min(last, first + count - 1)))
        count -= last - first + 1
    return RangeSet(tuple(taken))
