"""One small story for the questions of pages: two tenants, a restore, a recompute, prefetches, a deletion, two samples."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import httpx
import msgspec
from kvtrail_collector.settings import Settings
from kvtrail_collector.testing import running_collector
from kvtrail_schema import events as e
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, PrefetchId, RequestId, Slot, StepId
from kvtrail_schema.reasons import (
    AgentReason,
    InvalidateReason,
    MissReason,
    PrefetchWasteReason,
    PrefillReason,
    RejectReason,
)

from tests.collector.frames import header

MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
SEARCH, OTHER = NamespaceId(11), NamespaceId(12)
BIG: Final = BlockId(2**64 - 5)


def story() -> list[Event]:
    """The events, in order, numbered from 1."""
    told: list[Event] = [
        e.NamespaceDeclared(ns=SEARCH, text=json.dumps({"tenant": "aa", "model": "m1"}), t_ns=0),
        e.NamespaceDeclared(ns=OTHER, text=json.dumps({"tenant": "bb", "model": "m2"}), t_ns=0),
        *_restored(),
        *_recomputed(),
        e.RequestArrived(req=RequestId(3), tokens=5, ns=OTHER, t_ns=3 * SECOND),
        e.RequestRejected(req=RequestId(3), reason=RejectReason.TENANT_QUOTA, t_ns=3 * SECOND + MS),
        *_prefetched(),
        *_deleted(),
        *_sampled(),
    ]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, 1)]


def _restored() -> Iterator[Event]:
    """Request 1 loads two blocks of nvme in 40 ms, of which 10 in the queue, and answers after 50; then 4 tokens more in 40."""
    who = RequestId(1)
    yield e.RequestArrived(req=who, tokens=100, ns=SEARCH, text="r-one", t_ns=SECOND)
    for kind, at in ((e.SwapInQueued, 0), (e.SwapInStarted, 10 * MS)):
        for block in (BIG, BlockId(2)):
            yield kind(op=OpId(1), src=Tier.NVME, dst=Tier.GPU, block=block, req=who, t_ns=SECOND + at)
    loaded = e.SwapInLoaded(op=OpId(1), src=Tier.NVME, dst=Tier.GPU, bytes=512, tokens=16, req=who, t_ns=SECOND + 40 * MS)
    yield msgspec.structs.replace(loaded, block=BIG, queue_ns=10 * MS, io_ns=30 * MS)
    yield msgspec.structs.replace(loaded, block=BlockId(2))
    yield e.RequestFirstToken(req=who, t_ns=SECOND + 50 * MS)
    yield e.RequestFinished(req=who, tokens=5, t_ns=SECOND + 90 * MS)


def _recomputed() -> Iterator[Event]:
    """Request 2 computes 10 evicted tokens in a step of 20 that lasts 8 ms; it met a block of somebody else's before."""
    who, step = RequestId(2), StepId(1)
    yield e.RequestArrived(req=who, tokens=10, ns=OTHER, t_ns=2 * SECOND)
    yield e.PrefixMiss(req=who, block=BlockId(9), reason=MissReason.PERMISSION, t_ns=2 * SECOND)
    yield e.StepStarted(step=step, t_ns=2 * SECOND)
    yield e.PrefillChunk(req=who, step=step, tokens=10, reason=PrefillReason.EVICTED, t_ns=2 * SECOND + 8 * MS)
    yield e.StepFinished(step=step, tokens=20, t_ns=2 * SECOND + 8 * MS)
    yield e.RequestFirstToken(req=who, t_ns=2 * SECOND + 8 * MS)


def _prefetched() -> Iterator[Event]:
    """Three blocks for tenant aa: one used after 5 ms of reading, of which 1 was waited for, one too late after 3, one open."""
    for number in (1, 2, 3):
        block, prefetch = BlockId(20 + number), PrefetchId(number)
        yield e.PrefetchIssued(
            prefetch=prefetch, block=block, src=Tier.NVME, dst=Tier.HOST, req=RequestId(1), bytes=100, t_ns=SECOND + number
        )
    for number, io_ms in ((1, 5), (2, 3)):
        yield e.SwapInLoaded(
            op=OpId(10 + number), src=Tier.NVME, dst=Tier.HOST, prefetch=PrefetchId(number), io_ns=io_ms * MS, t_ns=SECOND + 8
        )
    yield e.CopyWaited(req=RequestId(1), op=OpId(11), wait_ns=MS, t_ns=SECOND + 8)
    yield e.PrefetchUsed(prefetch=PrefetchId(1), block=BlockId(21), req=RequestId(1), t_ns=SECOND + 9)
    yield e.PrefetchDeadlineMissed(prefetch=PrefetchId(2), block=BlockId(22), t_ns=SECOND + 9)
    yield e.PrefetchWasted(prefetch=PrefetchId(2), block=BlockId(22), reason=PrefetchWasteReason.TOO_LATE, t_ns=SECOND + 10)


def _deleted() -> Iterator[Event]:
    """A document goes: one copy on the gpu and two on nvme, the last 5 ms after it was asked for."""
    asked = EventId(77)
    yield e.InvalidationRequested(id=asked, reason=InvalidateReason.DOCUMENT_DELETED, text='{"document":"d1"}', t_ns=4 * SECOND)
    for slot, tier in enumerate((Tier.GPU, Tier.NVME, Tier.NVME)):
        yield e.Invalidated(
            block=BlockId(30 + slot),
            tier=tier,
            slot=Slot(slot),
            reason=InvalidateReason.DOCUMENT_DELETED,
            cause=asked,
            t_ns=4 * SECOND + 5 * MS,
        )


def _sampled() -> Iterator[Event]:
    """Two samples of nvme and of tenant aa's share of it, two heartbeats a second apart, and 5 ms of recording between."""
    for second, used in ((5, 600), (6, 400)):
        at = second * SECOND
        yield e.CapacitySampled(tier=Tier.NVME, capacity_bytes=1_000, used_bytes=used, depth=second, t_ns=at)
        yield e.CapacitySampled(tier=Tier.NVME, capacity_bytes=500, used_bytes=used // 2, ns=SEARCH, t_ns=at)
        yield e.AgentHeartbeat(reason=AgentReason.RECORDER, produced=second * 100, t_ns=at)
        yield e.CounterSampled(text="kvtrail_recorder_ns_total", value=5.0 * MS * second, t_ns=at)


@contextmanager
def story_told(
    settings: Settings | None = None, more: Sequence[Event] = (), without: tuple[type[Event], ...] = ()
) -> Iterator[httpx.Client]:
    """A client of a collector that holds the story, but for events of some types."""
    told = [event for event in (*story(), *more) if not isinstance(event, without)]
    with running_collector(settings) as running, httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client:
        body = encode_batch(header([event.seq for event in told], engine="e1"), table_of(told))
        client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        yield client
