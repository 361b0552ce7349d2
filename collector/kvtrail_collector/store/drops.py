"""The drops that senders declared, kept so that declaring one twice changes nothing.

A declaration whose count equals its span is exact: all its seqs were dropped, and exact ones merge. One with a smaller
count is sparse: so many seqs somewhere in its span; sparse ones are kept as they came, the same span with its largest count.
"""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import DropReason

from kvtrail_collector.store.ranges import SeqRange, merged

_FIELDS: Final = ["stage", "reason", "first_seq", "last_seq", "count"]


def merge_drops(declared: Iterable[DropRange]) -> tuple[DropRange, ...]:
    """Declarations in any order, in their one normal form."""
    exact: dict[tuple[int, int], list[SeqRange]] = {}
    sparse: dict[tuple[int, int, int, int], int] = {}
    for drop in declared:
        if is_exact(drop):
            exact.setdefault((drop.stage, drop.reason), []).append(SeqRange(drop.first_seq, drop.last_seq))
        else:
            key = (drop.stage, drop.reason, drop.first_seq, drop.last_seq)
            sparse[key] = max(sparse.get(key, 0), drop.count)
    whole = [_exact(stage, reason, part) for (stage, reason), parts in exact.items() for part in merged(parts)]
    return tuple(sorted([*whole, *(DropRange(*key, count=count) for key, count in sparse.items())], key=_order))


def is_exact(drop: DropRange) -> bool:
    """Whether every seq of a declaration's span was dropped."""
    return drop.count >= drop.last_seq - drop.first_seq + 1


def is_expiry(drop: DropRange) -> bool:
    """Whether a drop says that the collector's own retention let events go. Senders cannot say that: it is not theirs."""
    return (drop.stage, drop.reason) == (Stage.COLLECTOR, DropReason.RETENTION)


def drops_in(rows: pa.Table) -> list[DropRange]:
    """What `events_dropped` rows declare. A row that makes no sense declares nothing; it stays among the events."""
    own = rows.filter(pc.equal(rows["kind"], pa.scalar(Kind.EVENTS_DROPPED.value, pa.uint16()))).select(_FIELDS)
    return [drop for row in own.to_pylist() if (drop := _of_row(row)) is not None]


def _of_row(row: dict[str, int | None]) -> DropRange | None:
    """One row as a declaration, if it is one."""
    stage, reason, first_seq, last_seq, count = (row[name] for name in _FIELDS)
    if stage is None or reason is None or first_seq is None or last_seq is None or count is None:
        return None
    return DropRange(stage, reason, first_seq, last_seq, count) if 1 <= first_seq <= last_seq else None


def _exact(stage: int, reason: int, part: SeqRange) -> DropRange:
    """A declaration that all of a range was dropped."""
    return DropRange(stage, reason, part.first, part.last, part.last - part.first + 1)


def _order(drop: DropRange) -> tuple[int, int, int, int]:
    """The order of the normal form."""
    return (drop.stage, drop.reason, drop.first_seq, drop.last_seq)
