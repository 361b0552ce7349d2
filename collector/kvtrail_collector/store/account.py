"""What is known of one stream, as a value, and how a batch changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.batch import BatchHeader, DecodedBatch, DropRange
from kvtrail_schema.clock import Clocks
from kvtrail_schema.identity import Epoch, Rank, Stream

from kvtrail_collector.store.drops import drops_in, is_expiry, merge_drops
from kvtrail_collector.store.ranges import RangeSet, SeqRange, positions_of_new, runs

_LARGEST_PRODUCED: Final = 2**64 - 1


class Incoming(NamedTuple):
    """A decoded batch, and the collector's wall clock when its last byte had come."""

    batch: DecodedBatch
    received_wall_ns: int


class Receipt(NamedTuple):
    """What became of the rows of one batch: true once it is handed out, since that is after the commit."""

    stored: int
    duplicate: int


@dataclass(frozen=True, slots=True)
class Marks:
    """What a stream last said of itself (`produced` is the highest ever said), and when it was last heard."""

    produced: int
    state: int
    heard_wall_ns: int
    clocks: Clocks


@dataclass(frozen=True, slots=True)
class Account:
    """The books of one stream: `stored` is exactly the set of seqs of its rows in `events`."""

    stream_id: int
    stream: Stream
    stored: RangeSet
    drops: tuple[DropRange, ...]
    marks: Marks

    @property
    def expired(self) -> RangeSet:
        """The seqs that retention let go: they were stored, and are not stored again if they come again."""
        return RangeSet().add(SeqRange(drop.first_seq, drop.last_seq) for drop in self.drops if is_expiry(drop))


class Absorbed(NamedTuple):
    """An account after a batch, and the rows of the batch that are new to it."""

    account: Account
    rows: pa.Table
    receipt: Receipt


def stream_of(header: BatchHeader) -> Stream:
    """The stream that a batch belongs to."""
    return Stream(header.engine, Epoch(header.epoch), Rank(header.rank))


def opened(stream_id: int, header: BatchHeader, received_wall_ns: int) -> Account:
    """The account of a stream that was never heard of before."""
    marks = Marks(0, header.state, received_wall_ns, header.clocks)
    return Account(stream_id, stream_of(header), RangeSet(), (), marks)


def absorb(account: Account, incoming: Incoming) -> Absorbed:
    """Take what is new in a batch. Pure; runs on the writer's thread; vectorised over the rows."""
    header, table = incoming.batch
    numbers = table["seq"].combine_chunks().to_numpy(zero_copy_only=False)
    new = positions_of_new(numbers, account.stored.add(account.expired))
    rows = table if new.all() else table.filter(pa.array(new))
    stored = account.stored.add(runs(numbers[new]))
    drops = account.drops
    declared = [drop for drop in (*header.drops, *drops_in(rows)) if not is_expiry(drop)]
    if declared:
        drops = merge_drops([*drops, *declared])
    after = replace(account, stored=stored, drops=drops, marks=_marked(account.marks, incoming, rows))
    return Absorbed(after, rows, Receipt(stored=rows.num_rows, duplicate=int(np.count_nonzero(~new))))


def _marked(marks: Marks, incoming: Incoming, rows: pa.Table) -> Marks:
    """The marks after a batch: a batch that comes late never sets the state or the clocks back."""
    header = incoming.batch.header
    said = pc.max(rows["produced"]).as_py() or 0
    newest = header.clocks.monotonic_ns >= marks.clocks.monotonic_ns
    return Marks(
        produced=min(max(marks.produced, header.produced, said), _LARGEST_PRODUCED),
        state=header.state if newest else marks.state,
        heard_wall_ns=max(marks.heard_wall_ns, incoming.received_wall_ns),
        clocks=header.clocks if newest else marks.clocks,
    )
