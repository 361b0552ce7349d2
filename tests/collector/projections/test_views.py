"""Promises of the views: each row follows from the events as its page says, however they came."""

import random
from collections.abc import Iterable

import msgspec
import pytest
from kvtrail_collector.projections.views import NAMES, VIEWS
from kvtrail_collector.testing import memory_store
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BlockCreated,
    Event,
    Evicted,
    PrefetchCancelled,
    PrefetchCompleted,
    PrefetchDeadlineMissed,
    PrefetchIssued,
    PrefetchReady,
    PrefetchSkipped,
    PrefetchUsed,
    PrefetchWasted,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
    SwapOutWritten,
    TierCleared,
)
from kvtrail_schema.identity import BlockId, NamespaceId, OpId, PrefetchId, RequestId, Slot
from kvtrail_schema.reasons import ClearReason, EvictReason, PrefetchCancelReason, PrefetchSkipReason, PrefetchWasteReason

from tests.collector.frames import batch, dropped, events_batch, span

TIERS = "SELECT tier_name(tier), epoch(minute), ops, failed, bytes, wait_p50_ns FROM tier_minutes"
GPU, HOST, NVME = Tier.GPU, Tier.HOST, Tier.NVME


def asked(sql: str, events: Iterable[Event]) -> list[tuple[object, ...]]:
    """An answer after some events that came in a random order, in two batches."""
    own = sorted(events, key=lambda event: event.seq)
    first = set(random.Random(len(own)).sample([event.seq for event in own], len(own) // 2))
    with memory_store() as store:
        for part in ([event for event in own if event.seq in first], [event for event in own if event.seq not in first]):
            if part:
                store.submit(events_batch(part)).result()
        with store.read() as cursor:
            return cursor.execute(sql).fetchall()


def created(seq: int, block: int, slot: int = 1, ns: int | None = None) -> BlockCreated:
    """A copy on the GPU; its time is its seq."""
    own = None if ns is None else NamespaceId(ns)
    return BlockCreated(seq=seq, t_ns=seq, block=BlockId(block), tier=GPU, slot=Slot(slot), ns=own)


def evicted(seq: int, block: int, slot: int = 1) -> Evicted:
    """A copy that goes."""
    return Evicted(seq=seq, t_ns=seq, block=BlockId(block), tier=GPU, slot=Slot(slot), reason=EvictReason.CAPACITY)


def test_every_view_and_macro_answers() -> None:
    """None of them is broken, and a name is what the events call it."""
    with memory_store() as store, store.read() as cursor:
        for name in VIEWS:
            assert cursor.execute(f"FROM {name}").fetchall() == []
        for name, numbers in NAMES.items():
            first = next(iter(numbers))
            assert cursor.execute(f"SELECT {name}({first.value}), {name}(65000)").fetchall() == [(first.name.lower(), None)]


def test_a_stay_ends_with_its_own_eviction() -> None:
    """From creation to eviction; a copy that is still there is open; a load makes a copy at its destination."""
    loaded = SwapInLoaded(seq=4, t_ns=4, op=OpId(1), src=NVME, dst=HOST, block=BlockId(7), slot=Slot(9))
    rows = asked(
        "SELECT block, tier_name(tier), slot, from_ns, to_ns, ended_by, reason_name(reason) FROM residency ORDER BY from_ns",
        [created(1, 7), evicted(3, 7), loaded],
    )

    assert rows == [(7, "gpu", 1, 1, 3, "evicted", "capacity"), (7, "host", 9, 4, None, "open", None)]


def test_a_lost_eviction_is_not_made_up() -> None:
    """Where the next copy stands in the place, or the eviction names another block, the stay is superseded."""
    rows = asked("SELECT block, to_ns, ended_by FROM residency ORDER BY from_ns", [created(1, 7), created(5, 8), evicted(9, 6)])

    assert rows == [(7, 5, "superseded"), (8, 9, "superseded")]


def test_a_stay_without_slot_ends_with_its_block() -> None:
    """A load need not tell a slot: its eviction does, and ends it; what befalls another block in that slot does not."""
    loaded = SwapInLoaded(seq=2, t_ns=2, op=OpId(1), src=NVME, dst=GPU, block=BlockId(7))
    rows = asked(
        "SELECT block, slot, to_ns, ended_by FROM residency ORDER BY block", [created(1, 6, 4), loaded, evicted(5, 7, 4)]
    )

    assert [(6, 4, 5, "superseded"), (7, None, 5, "evicted")] == rows


def test_a_place_on_nvme_outlives_a_process() -> None:
    """Another process of the engine ends what one wrote there, and nothing of what was in its memory."""
    written = SwapOutWritten(seq=2, t_ns=2, op=OpId(1), src=GPU, dst=NVME, block=BlockId(7), slot=Slot(1))
    later = [
        msgspec.structs.replace(evicted(1, 7), tier=NVME, t_ns=9),
        msgspec.structs.replace(evicted(2, 7), t_ns=10),
    ]
    with memory_store() as store:
        store.submit(events_batch([created(1, 7), written])).result()
        store.submit(events_batch(later, epoch=8)).result()
        with store.read() as cursor:
            rows = cursor.execute("SELECT tier_name(tier), to_ns, ended_by FROM residency ORDER BY tier").fetchall()

    assert [("gpu", None, "open"), ("nvme", 9, "evicted")] == rows


def test_a_cleared_tier_ends_what_it_names() -> None:
    """All copies there, or those of one namespace; what was gone before keeps its own end."""
    cleared = TierCleared(seq=6, t_ns=6, tier=GPU, reason=ClearReason.MANUAL, ns=NamespaceId(3))
    everything = TierCleared(seq=8, t_ns=8, tier=GPU, reason=ClearReason.RESET)
    events = [created(1, 7, 1, ns=3), created(2, 8, 2, ns=4), created(3, 9, 3, ns=3), evicted(5, 9, 3), cleared, everything]
    rows = asked("SELECT block, to_ns, ended_by, reason_name(reason) FROM residency ORDER BY block", events)

    assert rows == [(7, 6, "cleared", "manual"), (8, 8, "cleared", "reset"), (9, 5, "evicted", "capacity")]


@pytest.mark.parametrize("t_ns", [6, 2**63 - 1, -(2**63)])
def test_what_is_made_at_the_time_of_a_clear_and_told_after_it_stays(t_ns: int) -> None:
    """Of one time the order in which it was told decides, at the ends of time, too."""
    told = [created(6, 7), TierCleared(seq=7, t_ns=t_ns, tier=GPU, reason=ClearReason.MANUAL), created(8, 8, 2)]
    events = [msgspec.structs.replace(event, t_ns=t_ns) for event in told]
    rows = asked("SELECT block, ended_by FROM residency ORDER BY block", events)

    assert rows == [(7, "cleared"), (8, "open")]


def issued(seq: int, block: int) -> PrefetchIssued:
    """A block that is fetched ahead."""
    one, own = PrefetchId(1), BlockId(block)
    return PrefetchIssued(seq=seq, t_ns=seq, prefetch=one, block=own, src=NVME, dst=HOST, req=RequestId(5), deadline_ns=40)


def test_each_prefetched_block_has_one_outcome() -> None:
    """Used, wasted, cancelled, or still open; a missed deadline stands beside it; a skipped one was never issued."""
    one = PrefetchId(1)
    events = [
        *(issued(seq, seq) for seq in (1, 2, 3, 4)),
        PrefetchCompleted(seq=5, t_ns=5, prefetch=one, block=BlockId(1)),
        PrefetchReady(seq=6, t_ns=6, prefetch=one, block=BlockId(1)),
        PrefetchUsed(seq=7, t_ns=7, prefetch=one, block=BlockId(1), req=RequestId(5)),
        PrefetchDeadlineMissed(seq=8, t_ns=8, prefetch=one, block=BlockId(2)),
        PrefetchWasted(seq=9, t_ns=9, prefetch=one, block=BlockId(2), reason=PrefetchWasteReason.TOO_LATE),
        PrefetchCancelled(seq=10, t_ns=10, prefetch=one, block=BlockId(3), reason=PrefetchCancelReason.DEADLINE),
        PrefetchSkipped(seq=11, t_ns=11, prefetch=PrefetchId(2), block=BlockId(9), reason=PrefetchSkipReason.NO_ROOM),
    ]
    rows = asked(
        "SELECT block, issued_ns, completed_ns, ready_ns, ended_ns, outcome, reason_name(reason), is_late FROM prefetches"
        " ORDER BY block",
        events,
    )

    assert rows == [
        (1, 1, 5, 6, 7, "used", None, False),
        (2, 2, None, None, 9, "wasted", "too_late", True),
        (3, 3, None, None, 10, "cancelled", "deadline", False),
        (4, 4, None, None, None, "open", None, False),
        (9, None, None, None, None, "skipped", "no_room", False),
    ]


def test_a_queue_is_counted_at_every_change() -> None:
    """Waiting goes up when an op queues and down when it starts; in service from there to its end."""
    one, two = OpId(1), OpId(2)
    events = [
        SwapInQueued(seq=1, t_ns=10, op=one, src=NVME, dst=GPU),
        SwapInQueued(seq=2, t_ns=20, op=two, src=NVME, dst=GPU),
        SwapInStarted(seq=3, t_ns=30, op=one, src=NVME, dst=GPU),
        SwapInLoaded(seq=4, t_ns=40, op=one, src=NVME, dst=GPU),
        SwapInStarted(seq=5, t_ns=40, op=two, src=NVME, dst=GPU),
    ]
    rows = asked("SELECT t_ns, waiting, in_service FROM queue_occupancy WHERE tier_name(tier) = 'nvme' ORDER BY t_ns", events)

    assert rows == [(10, 1, 0), (20, 2, 0), (30, 1, 1), (40, 0, 1)]


def test_minutes_add_up_to_ops_and_requests() -> None:
    """The five whole requests of a stream stand in one minute: five ops of thirty bytes, five that finished."""
    with memory_store() as store:
        store.submit(batch(span(1, 40))).result()
        with store.read() as cursor:
            tiers = cursor.execute(TIERS).fetchall()
            tenants = cursor.execute("SELECT requests, finished, cancelled, output_tokens FROM tenant_minutes").fetchall()

    assert tiers == [("nvme", 960.0, 5, 0, 150, 1_000)]
    assert tenants == [(5, 5, 0, 35)]


@pytest.mark.parametrize(
    ("seqs", "gaps"),
    [
        ([*span(3, 10), *span(15, 20)], [(1, 2, 0), (11, 14, 2), (21, 25, 0)]),
        ([], [(1, 25, 2)]),
    ],
)
def test_holes_are_rows(seqs: list[int], gaps: list[tuple[int, int, int]]) -> None:
    """What is missing at the beginning, in the middle and at the end, and how much of it somebody says was dropped."""
    with memory_store() as store:
        store.submit(batch(seqs, produced=25, drops=(dropped(11, 12),))).result()
        with store.read() as cursor:
            assert cursor.execute("SELECT first_seq, last_seq, dropped FROM gaps ORDER BY ALL").fetchall() == gaps
