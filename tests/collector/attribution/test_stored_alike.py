"""A store says of a spike to the bit what all of its events say, whatever transfers and requests lie across its windows."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.questions.attribution import attribute_stored
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.questions.windows import WindowsRecording
from kvtrail_collector.testing import memory_store
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Event,
    PrefetchIssued,
    PrefetchUsed,
    PrefetchWasted,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
    SwapOutQueued,
    SwapOutStarted,
    SwapOutWritten,
)
from kvtrail_schema.identity import BlockId, OpId, PrefetchId, RequestId
from kvtrail_schema.reasons import PrefetchWasteReason

from tests.collector.attribution.synthetic import MS, NEIGHBOUR, SECOND, TENANT, Fault, Plan, simulate
from tests.collector.attribution.test_mechanisms import REFERENCE, WINDOW, filled
from tests.collector.frames import events_batch

FAULT = (45 * SECOND, 65 * SECOND)
FIRST_OP = 10_000_000
RATE_PER_S = 25


def disturbed(events: list[Event]) -> list[Event]:
    """A run in which others keep the same tier busy, in every way that a window cuts through; seqs given anew, some lost."""
    ordered = sorted([*events, *_beside()], key=lambda event: event.t_ns)
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(ordered, start=1)]
    return [event for event in numbered if event.seq % 4_001]


def _beside() -> Iterator[Event]:
    """Write-backs for two tenants, reads that outlast the windows, prefetches told of late, loads of an old request."""
    ops, ids = count(FIRST_OP), count(1)
    for at in range(10 * SECOND, 80 * SECOND, SECOND // 4):
        yield from _write_back(OpId(next(ops)), at, at + 30 * MS)
        yield from _load_of(OpId(next(ops)), RequestId(1), at, at + 25 * MS)
        prefetch = PrefetchId(next(ids))
        yield from _prefetch(prefetch, OpId(next(ops)), at)
    yield from _load_of(OpId(next(ops)), None, 20 * SECOND, 78 * SECOND)
    yield from _load_of(OpId(next(ops)), None, FAULT[0] + 3 * SECOND, 90 * SECOND)


def _write_back(op: OpId, start_ns: int, end_ns: int) -> Iterator[Event]:
    """Two blocks of two tenants; the one that has the parts is not of the lower namespace."""
    for ns, part in ((NEIGHBOUR, 1), (TENANT, None)):
        own: dict[str, Any] = {"op": op, "src": Tier.HOST, "dst": Tier.NVME, "ns": ns}
        yield SwapOutQueued(t_ns=start_ns, **own)
        yield SwapOutStarted(t_ns=start_ns + 5 * MS, **own)
        yield SwapOutWritten(t_ns=end_ns, bytes=4096, queue_ns=part and 5 * MS, io_ns=part and 20 * MS, **own)


def _load_of(op: OpId, req: RequestId | None, start_ns: int, end_ns: int) -> Iterator[Event]:
    """A load, which says nothing of its namespace."""
    own: dict[str, Any] = {"op": op, "src": Tier.NVME, "dst": Tier.GPU, "req": req, "bytes": 4096}
    yield SwapInQueued(t_ns=start_ns, **own)
    yield SwapInStarted(t_ns=start_ns + MS, **own)
    yield SwapInLoaded(t_ns=end_ns, queue_ns=MS, io_ns=end_ns - start_ns - 2 * MS, **own)


def _prefetch(prefetch: PrefetchId, op: OpId, at: int) -> Iterator[Event]:
    """A block that is fetched ahead, of which is told half a minute later what became of it."""
    block = BlockId(prefetch)
    own: dict[str, Any] = {"op": op, "src": Tier.NVME, "dst": Tier.HOST, "prefetch": prefetch}
    yield PrefetchIssued(t_ns=at, prefetch=prefetch, block=block, src=Tier.NVME, dst=Tier.HOST)
    yield SwapInQueued(t_ns=at + MS, block=block, **own)
    yield SwapInLoaded(t_ns=at + 40 * MS, block=block, bytes=4096, queue_ns=10 * MS, io_ns=20 * MS, **own)
    if prefetch % 3:
        yield PrefetchWasted(t_ns=at + 30 * SECOND, prefetch=prefetch, block=block, reason=PrefetchWasteReason.NEVER_NEEDED)
    else:
        req = RequestId(RATE_PER_S * (at // SECOND + 30))  # one that comes about then
        yield PrefetchUsed(t_ns=at + 30 * SECOND, prefetch=prefetch, block=block, req=req)


ASKED = ((45 * SECOND, 55 * SECOND), (36 * SECOND, 44 * SECOND))
"""A window and a reference, much of whose prefetches was fetched long before both."""


@pytest.mark.parametrize(
    ("fault", "engines", "asked", "kinds"),
    [
        (Fault.NVME_QUEUE, 1, (None, None), {"write_back", "demand", "prefetch_wasted", "prefetch_used"}),
        (Fault.NVME_QUEUE, 1, ASKED, {"write_back", "demand", "prefetch_wasted", "prefetch_used"}),
        (Fault.LONG_PREFILL, 2, (None, None), set[str]()),
    ],
)
def test_stored_is_what_all_events_say(
    fault: Fault, engines: int, asked: tuple[Interval | None, Interval | None], kinds: set[str]
) -> None:
    """Every figure, share, interval, tenant and event, where transfers lie across the windows and rows are lost."""
    with memory_store() as store:
        for number in range(engines):
            events = disturbed(simulate(Plan(seed=3 + number, fault=fault, run_s=80, rate_per_s=RATE_PER_S)).events)
            store.submit(events_batch(events, engine=f"engine-{number}")).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            known = streams(cursor)
            stored, everything = attribute_stored(cursor, known, *asked), attribute(event_rows(cursor, known), *asked)

    assert everything.verdicts
    assert kinds <= {row.kind for row in everything.blame}
    assert msgspec.to_builtins(everything) == msgspec.to_builtins(stored)


@pytest.mark.parametrize("leave", [1, 4], ids=["filled", "pressed"])
def test_what_left_a_tier_is_counted_alike(leave: int) -> None:
    """Also where a verdict, or its absence, hangs on what was evicted."""
    events = sorted(filled(leave=leave, is_written=False), key=lambda event: event.t_ns)
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, start=1)]
    with memory_store() as store:
        store.submit(events_batch(numbered)).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            known = streams(cursor)
            stored = attribute_stored(cursor, known, WINDOW, REFERENCE)
            everything = attribute(event_rows(cursor, known), WINDOW, REFERENCE)

    assert (["HIT_RATE_MISLEADS"] if leave > 1 else []) == [verdict.code for verdict in everything.verdicts]
    assert (leave == 1) is bool(everything.notes)
    assert msgspec.to_builtins(everything) == msgspec.to_builtins(stored)


def test_what_no_verdict_asks_for_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is slower no transfer is read, however many there are."""
    monkeypatch.setattr(WindowsRecording, "ops", property(lambda _: pytest.fail("transfers were read")))
    with memory_store() as store:
        store.submit(events_batch(simulate(Plan(seed=1)).numbered())).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            found = attribute_stored(cursor, streams(cursor), (40 * SECOND, 60 * SECOND))

    assert found.outcome.value == "nothing_slower"
    assert found.window is not None
