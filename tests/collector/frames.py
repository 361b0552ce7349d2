"""A small language for the collector's tests: streams whose events follow from their seqs, and batches cut from them."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from kvtrail_collector.store import Incoming
from kvtrail_schema.arrow_schema import EXTRA, table_of
from kvtrail_schema.batch import VERSION, BatchHeader, DecodedBatch, DropRange, StreamState, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Stage, Tier
from kvtrail_schema.events import (
    Event,
    RequestAdmitted,
    RequestArrived,
    RequestFinished,
    RequestFirstToken,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
)
from kvtrail_schema.identity import BlockId, OpId, RequestId
from kvtrail_schema.reasons import DropReason

EVENTS_A_REQUEST = 8
HEARD_NS = 1_000_000_000_000


def event_at(seq: int) -> Event:
    """The event with this seq: every stream tells of requests of eight events, each with one load of two blocks."""
    number, place = divmod(seq - 1, EVENTS_A_REQUEST)
    req, op, t_ns = RequestId(number), OpId(number), seq * 1_000
    block = BlockId(number)
    choices: list[Event] = [
        RequestArrived(seq=seq, t_ns=t_ns, req=req, tokens=100 + number, text=f"r-{number}"),
        SwapInQueued(seq=seq, t_ns=t_ns, op=op, src=Tier.NVME, dst=Tier.GPU, block=block, req=req),
        SwapInStarted(seq=seq, t_ns=t_ns, op=op, src=Tier.NVME, dst=Tier.GPU, block=block, req=req),
        SwapInLoaded(seq=seq, t_ns=t_ns, op=op, src=Tier.NVME, dst=Tier.GPU, bytes=10, req=req, queue_ns=1_000, io_ns=500),
        SwapInLoaded(seq=seq, t_ns=t_ns, op=op, src=Tier.NVME, dst=Tier.GPU, bytes=20, req=req),
        RequestAdmitted(seq=seq, t_ns=t_ns, req=req),
        RequestFirstToken(seq=seq, t_ns=t_ns, req=req),
        RequestFinished(seq=seq, t_ns=t_ns, req=req, tokens=7),
    ]
    return choices[place]


def table(events: Iterable[Event]) -> pa.Table:
    """Events as the table that the decoder would give."""
    plain = table_of(events)
    return plain.append_column(EXTRA, pa.nulls(plain.num_rows, pa.utf8()))


def header(
    seqs: Sequence[int],
    *,
    engine: str = "engine",
    epoch: int = 7,
    rank: int = 0,
    produced: int = 0,
    drops: tuple[DropRange, ...] = (),
    state: StreamState = StreamState.RUNNING,
) -> BatchHeader:
    """The header of a batch with these seqs; none of them: a heartbeat."""
    first, last = (seqs[0], seqs[-1]) if seqs else (0, 0)
    return BatchHeader(
        version=VERSION,
        engine=engine,
        epoch=epoch,
        rank=rank,
        first_seq=first,
        last_seq=last,
        count=len(seqs),
        produced=max(produced, last),
        clocks=Clocks(monotonic_ns=last, wall_ns=HEARD_NS + last, error_ns=1),
        state=state,
        drops=drops,
    )


def batch(
    seqs: Sequence[int],
    *,
    engine: str = "engine",
    epoch: int = 7,
    rank: int = 0,
    produced: int = 0,
    drops: tuple[DropRange, ...] = (),
    heard_ns: int = HEARD_NS,
) -> Incoming:
    """A batch with these seqs, decoded."""
    head = header(seqs, engine=engine, epoch=epoch, rank=rank, produced=produced, drops=drops)
    return Incoming(DecodedBatch(head, table(event_at(seq) for seq in seqs)), heard_ns)


def events_batch(events: Sequence[Event], *, engine: str = "engine", epoch: int = 7, rank: int = 0) -> Incoming:
    """A batch with these very events."""
    head = header([event.seq for event in events], engine=engine, epoch=epoch, rank=rank)
    return Incoming(DecodedBatch(head, table(events)), HEARD_NS)


def frame(seqs: Sequence[int], *, engine: str = "engine", produced: int = 0, drops: tuple[DropRange, ...] = ()) -> bytes:
    """A batch with these seqs, as it travels."""
    return encode_batch(header(seqs, engine=engine, produced=produced, drops=drops), table_of(event_at(seq) for seq in seqs))


def dropped(first: int, last: int, *, count: int | None = None, stage: Stage = Stage.RING) -> DropRange:
    """A declaration that a range was dropped because something was full; all of it unless a count says less."""
    return DropRange(stage, DropReason.FULL, first, last, last - first + 1 if count is None else count)


def span(first: int, last: int) -> range:
    """All seqs from first to last."""
    return range(first, last + 1)
