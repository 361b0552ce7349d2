"""From rows to figures: each measure says what it says it says, whatever commits the rows came in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kvtrail_collector.alerts.batch import NS_S
from kvtrail_collector.alerts.evaluate import AlertKey, Asked, Evaluator
from kvtrail_collector.alerts.observe import Observer
from kvtrail_collector.alerts.rules import LONGEST_WINDOW_S
from kvtrail_collector.alerts.state import Turn
from kvtrail_collector.alerts.windows import Windows
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    AttentionRead,
    BlockCreated,
    CapacitySampled,
    CopyWaited,
    Event,
    Invalidated,
    PrefetchCancelled,
    PrefetchSkipped,
    PrefillChunk,
    PrefixHit,
    RecomputeChosen,
    RequestArrived,
    SwapInFailed,
    SwapInLoaded,
)
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, PrefetchId, RequestId, Slot, StepId
from kvtrail_schema.reasons import (
    InvalidateReason,
    PrefetchCancelReason,
    PrefetchSkipReason,
    PrefillReason,
    SwapInFailReason,
)

from tests.collector.alerts.stories import ENGINE, NOW_S, prefetches, rows_of, rule

MS = 1_000_000


def numbered(events: Sequence[Event], second: int = NOW_S) -> list[Event]:
    """Events with their seqs, all within one second."""
    return [type(event)(**{**_fields(event), "seq": seq, "t_ns": second * NS_S}) for seq, event in enumerate(events, start=1)]


def _fields(event: Event) -> dict[str, Any]:
    """The fields of an event, by name."""
    return {name: getattr(event, name) for name in event.__struct_fields__}


def figures(measure: str, *commits: Sequence[Event], **changes: object) -> dict[str, float | None]:
    """The figure of a measure by tier, after these commits."""
    windows = Windows()
    observer = Observer(windows)
    for events in commits:
        observer.observe(rows_of(events), NOW_S)
    evaluator = Evaluator([rule(measure=measure, **changes)], windows)
    evaluator.look(0, NOW_S, Asked({}))
    return {key.tier: state.value for key, state in evaluator.states.items()}


def failed(reason: SwapInFailReason, src: Tier = Tier.REMOTE, op: int = 1) -> SwapInFailed:
    """A block of a load that failed."""
    return SwapInFailed(op=OpId(op), src=src, dst=Tier.GPU, reason=reason)


def loaded(src: Tier = Tier.REMOTE) -> SwapInLoaded:
    """A load that went well."""
    return SwapInLoaded(op=OpId(1), src=src, dst=Tier.GPU)


def test_waste_is_a_share_of_a_window() -> None:
    """What ended outside the window does not count, and too few say nothing."""
    old, new = prefetches(NOW_S - 20, wasted=100), prefetches(NOW_S - 1, used=3, wasted=1)

    assert {"": 0.25} == figures("prefetch_waste_share", old, new)
    assert {"": None} == figures("prefetch_waste_share", old, new, least=5)


def test_what_is_called_off_was_asked_for_and_not_used() -> None:
    """Not what an action, or the end of the engine, called off: that might have been used."""
    reasons = [*[PrefetchCancelReason.SUPERSEDED] * 7, *[PrefetchCancelReason.DEGRADED] * 50, PrefetchCancelReason.SHUTDOWN]
    called_off = [PrefetchCancelled(prefetch=PrefetchId(n), block=BlockId(n), reason=each) for n, each in enumerate(reasons)]
    both = (numbered(called_off), prefetches(NOW_S, used=2, wasted=1))

    assert {"": 0.8} == figures("prefetch_unused_share", *both)
    assert {"": pytest.approx(1 / 3)} == figures("prefetch_waste_share", *both)


@pytest.mark.parametrize(
    ("reason", "ends"),
    [(PrefetchSkipReason.DEGRADED, []), (PrefetchSkipReason.NO_ROOM, [Turn.CLEARED])],
)
@pytest.mark.parametrize("measure", ["prefetch_waste_share", "prefetch_unused_share"])
def test_what_an_action_keeps_back_keeps_its_alert(measure: str, reason: PrefetchSkipReason, ends: list[Turn]) -> None:
    """An engine that would fetch as much as before, and must not, is not safe yet; one that has no room is."""
    windows = Windows()
    observer, evaluator = Observer(windows), Evaluator([rule(measure=measure, least=4)], windows)
    observer.observe(rows_of(prefetches(NOW_S, wasted=9)), NOW_S)
    evaluator.look(0, NOW_S, Asked({}))
    skipped = [PrefetchSkipped(prefetch=PrefetchId(n), block=BlockId(n), reason=reason) for n in range(4)]
    observer.observe(rows_of(numbered(skipped, NOW_S + 8)), NOW_S + 8)

    assert ends == [change.turn for change in evaluator.look(8 * NS_S, NOW_S + 8, Asked({}))]
    assert [] == [change.turn for change in evaluator.look(9 * NS_S, NOW_S + 9, Asked({})) if not ends]


def test_one_commit_or_many_give_the_same() -> None:
    """Counts add up over commits."""
    events = prefetches(NOW_S, used=5, wasted=15)

    assert {"": 0.75} == figures("prefetch_waste_share", events)
    assert {"": 0.75} == figures("prefetch_waste_share", events[:7], events[7:])


def test_the_future_counts_as_now() -> None:
    """An engine whose clock is ahead is heard all the same."""
    assert {"": 1.0} == figures("prefetch_waste_share", prefetches(NOW_S + 50, wasted=4))


def test_restores_are_compared_with_recompute() -> None:
    """The tail of waits over the median estimate, to the width of a bin."""
    waits = [CopyWaited(req=RequestId(n), wait_ns=80 * MS if n >= 90 else 1 * MS) for n in range(100)]
    chosen = [RecomputeChosen(req=RequestId(n), tokens=64, recompute_estimate_ns=10 * MS) for n in range(20)]
    found = figures("restore_over_recompute", numbered([*waits, *chosen]))[""]

    assert found == pytest.approx(8.0, rel=0.2)


def test_thrash_is_what_was_computed_again_of_all() -> None:
    """Tokens count, not chunks, and only those whose blocks were evicted."""
    chunks = [
        PrefillChunk(req=RequestId(1), step=StepId(1), tokens=300, reason=PrefillReason.EVICTED),
        PrefillChunk(req=RequestId(2), step=StepId(1), tokens=700, reason=PrefillReason.NEW),
        PrefillChunk(req=RequestId(2), step=StepId(1), tokens=200, reason=PrefillReason.CHOSEN),
    ]

    assert {"": 0.25} == figures("thrash_share", numbered(chunks))


def test_a_streak_goes_on_over_commits_and_ends_with_one_that_went_well() -> None:
    """Each tier has its own, and what was called off is no failure."""
    first, second, third = (failed(SwapInFailReason.TIMEOUT, op=op) for op in (1, 2, 3))
    called_off, nvme = failed(SwapInFailReason.CANCELLED, op=4), loaded(Tier.NVME)

    assert {"remote": 3.0, "nvme": 0.0} == figures(
        "connector_error_streak", numbered([loaded(), first, nvme, called_off]), numbered([second, third])
    )
    assert {"remote": 1.0} == figures("connector_error_streak", numbered([first, second, loaded(), third]))


def test_a_streak_counts_ops_and_not_their_blocks() -> None:
    """One op that timed out is one failure, however many blocks it had, and though its rows came in two commits."""
    blocks = [failed(SwapInFailReason.TIMEOUT)] * 8

    assert {"remote": 1.0} == figures("connector_error_streak", numbered(blocks))
    assert {"remote": 1.0} == figures("connector_error_streak", numbered(blocks[:5]), numbered(blocks[5:]))


@pytest.mark.parametrize("reason", [*SwapInFailReason])
def test_what_is_wrong_with_a_block_is_no_error_of_its_tier(reason: SwapInFailReason) -> None:
    """A tier is disabled for what does not work, not for blocks that expired or are of an older version."""
    is_error = reason in {SwapInFailReason.TIMEOUT, SwapInFailReason.IO, SwapInFailReason.LOST}

    assert {"remote": 2.0 if is_error else 1.0} == figures(
        "connector_error_streak", numbered([failed(SwapInFailReason.IO), failed(reason, op=2)])
    )


def test_each_rank_has_a_streak_of_its_own() -> None:
    """What goes well on one rank does not hide what fails on another."""
    windows = Windows()
    observer = Observer(windows)
    for number in range(3):
        observer.observe(rows_of(numbered([failed(SwapInFailReason.LOST, op=number)]), rank=0), NOW_S)
        observer.observe(rows_of(numbered([loaded()]), rank=1), NOW_S)

    (subject,) = windows.subjects("connector_error_streak")
    assert 3.0 == windows.latest(subject, NOW_S, is_high_bad=True)


def test_mismatches_are_counted_by_tier() -> None:
    """A checksum that did not hold is counted where the bytes came from."""
    events = numbered([failed(SwapInFailReason.CHECKSUM, Tier.NVME), failed(SwapInFailReason.TIMEOUT, Tier.NVME)])

    assert {"nvme": 1.0} == figures("checksum_mismatches", events)


def test_capacities_are_the_last_sample() -> None:
    """Of a tier as a whole, and of the fullest tenant; a sample of a tenant is none of the tier."""
    samples = [
        CapacitySampled(tier=Tier.HOST, capacity_bytes=100, used_bytes=50, evictable_bytes=0, depth=3),
        CapacitySampled(tier=Tier.HOST, capacity_bytes=100, used_bytes=90, evictable_bytes=5, depth=7),
        CapacitySampled(tier=Tier.HOST, capacity_bytes=10, used_bytes=9, ns=NamespaceId(1)),
        CapacitySampled(tier=Tier.HOST, capacity_bytes=10, used_bytes=2, ns=NamespaceId(2)),
    ]

    assert {"host": 7.0} == figures("queue_depth", numbered(samples))
    assert {"host": 0.15} == figures("free_share", numbered(samples), raise_at=0.1, clear_at=0.2)
    assert {"host": 0.9} == figures("tenant_quota_share", numbered(samples))


def test_a_stale_sample_is_no_figure() -> None:
    """What was sampled half a minute ago says nothing about now."""
    assert {"host": None} == figures("queue_depth", numbered([CapacitySampled(tier=Tier.HOST, depth=9)], NOW_S - 31))


def test_hits_on_blocks_of_another_namespace_are_found() -> None:
    """A hit is held against the namespace that its request came with; one whose arrival was not seen accuses nobody."""
    arrived = RequestArrived(req=RequestId(1), tokens=9, ns=NamespaceId(5))
    hits = [
        PrefixHit(req=RequestId(req), block=BlockId(1), tier=Tier.HOST, ns=NamespaceId(ns))
        for req, ns in ((1, 5), (1, 6), (2, 7))
    ]

    assert {"": 1.0} == figures("cross_namespace_hits", numbered([arrived]), numbered(hits))


def test_reads_of_what_was_invalidated_are_found() -> None:
    """A copy that was taken away may be read again only once it was made anew."""
    place: dict[str, Any] = {"block": BlockId(3), "tier": Tier.GPU, "slot": Slot(1)}
    gone = Invalidated(**place, reason=InvalidateReason.MANUAL, cause=EventId(1))
    read, made = AttentionRead(req=RequestId(1), **place), BlockCreated(**place)

    assert {"gpu": 1.0} == figures("reads_after_invalidate", numbered([read, gone, read]))
    assert {} == figures("reads_after_invalidate", numbered([gone, made, read]))


def test_ids_are_of_64_bits() -> None:
    """Blocks and namespaces are keyed hashes: every one of their bits may be set."""
    big = 2**64 - 2
    place: dict[str, Any] = {"block": BlockId(big), "tier": Tier.GPU, "slot": Slot(1), "ns": NamespaceId(big)}
    gone = Invalidated(**place, reason=InvalidateReason.MANUAL, cause=EventId(big))

    assert {"gpu": 1.0} == figures("reads_after_invalidate", numbered([gone, AttentionRead(req=RequestId(big), **place)]))


def test_memory_is_bounded() -> None:
    """However many engines speak, as many subjects are kept as there may be; the others are counted."""
    windows = Windows()
    observer = Observer(windows)
    rows = rows_of(prefetches(NOW_S, wasted=1))
    for number in range(5_000):
        rows.origin = rows.origin._replace(engine=f"{ENGINE}-{number}")
        observer._shares(rows, NOW_S)

    assert len(windows.subjects("prefetch_waste_share")) <= 4_096
    assert windows.refused > 0


def test_who_is_heard_no_more_makes_room_for_others() -> None:
    """Engines come and go for months; one whose alert fires still is kept until that has ended."""
    windows = Windows()
    observer, evaluator = Observer(windows), Evaluator([rule(hold_s=3_600.0)], windows)
    for number, told in enumerate((prefetches(NOW_S, used=9), prefetches(NOW_S, wasted=9))):
        rows = rows_of(told)
        rows.origin = rows.origin._replace(engine=f"{ENGINE}-{number}")
        observer.observe(rows, NOW_S)
    evaluator.look(0, NOW_S, Asked({}))
    later_s = NOW_S + LONGEST_WINDOW_S
    evaluator.forget(later_s - 1)
    assert 2 == len(windows.subjects("prefetch_waste_share"))

    evaluator.forget(later_s)
    assert [f"{ENGINE}-1"] == [key.engine for key in evaluator.states]
    evaluator.look(1 * NS_S, later_s, Asked({}))
    (ended,) = evaluator.look(3_602 * NS_S, later_s + 3_602, Asked({}))
    evaluator.forget(later_s + 3_602)

    assert Turn.CLEARED is ended.turn
    assert ([], {}) == (windows.subjects("prefetch_waste_share"), evaluator.states)


def test_figures_of_nobody_are_not_looked_at() -> None:
    """A rule of which there is no observation has no alert."""
    evaluator = Evaluator([rule()], Windows())
    evaluator.look(0, NOW_S, Asked({}))

    assert dict[AlertKey, object]() == evaluator.states
