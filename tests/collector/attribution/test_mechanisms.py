"""What tells causes apart that look alike in a ledger: whose lookups, whose prefetches, whose work stood before a tier."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution, Outcome, Window
from kvtrail_collector.detectors.hits_by_tier import _leaving_a_second
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CopyWaited,
    Event,
    Evicted,
    LookupFinished,
    PrefetchIssued,
    PrefetchReady,
    PrefillChunk,
    RequestAdmitted,
    RequestArrived,
    RequestFirstToken,
    RequestWaiting,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
    SwapOutQueued,
    SwapOutWritten,
)
from kvtrail_schema.identity import BlockId, OpId, PrefetchId, RequestId, Slot, StepId
from kvtrail_schema.reasons import EvictReason, PrefillReason, WaitReason

from tests.collector.attribution.synthetic import MS, NEIGHBOUR, SECOND, TENANT, stream_table

RUN_S = 60
WINDOW = (30 * SECOND, 50 * SECOND)
REFERENCE = (8 * SECOND, 30 * SECOND)


def first_code(events: list[Event]) -> str | None:
    """What is named first for the window of a run."""
    answer = answer_to(events)
    return answer.verdicts[0].code if answer.verdicts else None


def answer_to(events: list[Event]) -> Attribution:
    """The explanation of the window of a run, whose events are put in order of time, as it is published."""
    ordered = sorted(events, key=lambda event: event.t_ns)
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(ordered, start=1)]
    found = attribute(stream_table(numbered), WINDOW, REFERENCE, seed=1)
    return msgspec.json.decode(msgspec.json.encode(found), type=Attribution)


def arrivals(seed: int, rate_per_s: int) -> list[tuple[int, int]]:
    """Requests at random times, with their numbers."""
    at = np.sort(np.random.default_rng(seed).uniform(0, RUN_S, RUN_S * rate_per_s))
    return [(number, int(t_s * SECOND)) for number, t_s in enumerate(at, start=1)]


def is_ill(t_ns: int) -> bool:
    """Whether a time is within the window."""
    return WINDOW[0] <= t_ns < WINDOW[1]


def step(number: int, start_ns: int, end_ns: int, tokens: int = 64, reason: PrefillReason = PrefillReason.NEW) -> list[Event]:
    """The whole prompt of a request in one step, and its first token."""
    req = RequestId(number)
    return [
        StepStarted(t_ns=start_ns, step=StepId(number)),
        RequestAdmitted(t_ns=start_ns, req=req, step=StepId(number)),
        PrefillChunk(t_ns=start_ns, req=req, step=StepId(number), tokens=tokens, reason=reason),
        StepFinished(t_ns=end_ns, step=StepId(number), tokens=tokens, prefill_tokens=tokens),
        RequestFirstToken(t_ns=end_ns, req=req),
    ]


def behind_lookups(lookup_ms: int) -> Iterator[Event]:
    """One thread looks up whoever came, and computes where nobody waits to be looked up; some lookups take long."""
    random, now, looked = np.random.default_rng(5), 0, list[int]()
    waiting = arrivals(3, 40)
    while waiting or looked:
        if waiting and (waiting[0][1] <= now or not looked):
            number, at_ns = waiting.pop(0)
            start = max(now, at_ns)
            now = start + (lookup_ms * MS if is_ill(at_ns) and random.random() < 0.12 else MS // 3)
            looked.append(number)
            req = RequestId(number)
            yield RequestArrived(t_ns=at_ns, req=req, tokens=64, ns=TENANT, text=f"r{number}")
            yield LookupFinished(t_ns=now, req=req, duration_ns=now - start, tokens=64)
            yield RequestWaiting(t_ns=now, req=req, reason=WaitReason.BUDGET)
        else:
            start, now = now, now + 10 * MS
            yield from step(looked.pop(0), start, now)


def test_a_backlog_that_lookups_leave_is_theirs() -> None:
    """Requests that are looked up themselves wait while others' lookups hold the thread: that is no queue of work."""
    assert first_code(list(behind_lookups(130))) == "LOOKUP_BOUND"


def one_by_one(document_share: float) -> Iterator[Event]:
    """Chats and documents, computed one after the other; within the window another share, and fewer, but as much to compute."""
    random, free_ns, owed = np.random.default_rng(7), 0, 0.0
    kept = (0.05 * 960 + 0.95 * 64) / (document_share * 960 + (1 - document_share) * 64)
    for number, at_ns in arrivals(6, 60):
        share = document_share if is_ill(at_ns) else 0.05
        if is_ill(at_ns) and random.random() >= kept:
            continue
        owed = owed % 1 + share
        tokens, ns = (int(random.integers(640, 1280)), NEIGHBOUR) if owed >= 1 else (64, TENANT)
        req = RequestId(number)
        yield RequestArrived(t_ns=at_ns, req=req, tokens=tokens, ns=ns, text=f"r{number}")
        yield RequestWaiting(t_ns=at_ns, req=req, reason=WaitReason.BUDGET)
        start_ns = max(free_ns, at_ns)
        free_ns = start_ns + tokens * MS // 16
        yield from step(number, start_ns, free_ns, tokens)


def test_more_of_the_long_prompts_that_always_came_is_a_shift_of_the_mix() -> None:
    """Waiting behind them is no fault of a neighbour, as no more is asked for than before, and by nobody new."""
    assert first_code(list(one_by_one(0.3))) == "MIX_SHIFT"
    assert first_code(list(one_by_one(0.05))) is None


def without_room(reason: PrefillReason) -> Iterator[Event]:
    """One after the other, each waiting for room; within the window they take longer, for what this reason says."""
    free_ns = 0
    for number, at_ns in arrivals(8, 40):
        req, start_ns = RequestId(number), max(free_ns, at_ns)
        yield RequestArrived(t_ns=at_ns, req=req, tokens=64, ns=TENANT, text=f"r{number}")
        yield RequestWaiting(t_ns=at_ns, req=req, reason=WaitReason.CAPACITY)
        free_ns = start_ns + (23 * MS if is_ill(at_ns) else 10 * MS)
        yield from step(number, start_ns, free_ns, reason=reason if is_ill(at_ns) else PrefillReason.NEW)


def test_waits_for_room_that_goes_to_what_was_evicted_are_thrashing() -> None:
    """Where what is computed had been evicted, room is lacking since everything comes back; else it is lacking."""
    assert first_code(list(without_room(PrefillReason.EVICTED))) == "THRASH"
    assert first_code(list(without_room(PrefillReason.NEW))) == "CAPACITY_CLIFF"


class Loads:
    """Requests that load one block or some from nvme before their step."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ops = 0

    def read(
        self, at_ns: int, took: tuple[int, int], number: int, tier: Tier = Tier.NVME, size: int = 65_536, **own: Any
    ) -> int:
        """A read with its queue and its service; returns when it is done."""
        self.ops += 1
        place: dict[str, Any] = {"op": OpId(self.ops), "src": tier, "dst": Tier.GPU, "block": BlockId(number), **own}
        end = at_ns + sum(took)
        self.events.append(SwapInQueued(t_ns=at_ns, bytes=size, **place))
        self.events.append(SwapInLoaded(t_ns=end, bytes=size, queue_ns=took[0], io_ns=took[1], copy_ns=0, **place))
        return end

    def leave(self, at_ns: int, *, is_written: bool = True, size: int = 65_536) -> None:
        """Something leaves host; it is written to nvme, unless it lies there already."""
        self.ops += 1
        place: dict[str, Any] = {"op": OpId(self.ops), "src": Tier.HOST, "dst": Tier.NVME, "block": BlockId(self.ops)}
        if is_written:
            self.events.append(SwapOutQueued(t_ns=at_ns, bytes=size, **place))
            self.events.append(SwapOutWritten(t_ns=at_ns + MS, bytes=size, queue_ns=0, io_ns=MS, **place))
        gone = Evicted(t_ns=at_ns, block=BlockId(self.ops), tier=Tier.HOST, slot=Slot(0), reason=EvictReason.DEMOTION)
        self.events.append(gone)

    def serve(self, number: int, at_ns: int, reads: list[tuple[int, int, Tier, int]]) -> None:
        """A request, its loads one after the other, its step."""
        req, now = RequestId(number), at_ns + MS // 3
        self.events.append(RequestArrived(t_ns=at_ns, req=req, tokens=64, ns=TENANT, text=f"r{number}"))
        self.events.append(LookupFinished(t_ns=now, req=req, duration_ns=now - at_ns, tokens=64))
        for queue_ns, io_ns, tier, size in reads:
            self.events.append(RequestWaiting(t_ns=now, req=req, reason=WaitReason.KV_LOAD))
            now = self.read(now, (queue_ns, io_ns), number, tier, size, req=req)
        self.events += step(number, now, now + 5 * MS)


def overtaken(*, prefetched: bool, from_host: bool = False) -> list[Event]:
    """Within the window a third of the requests read what is just being fetched ahead; before it that was there in time, on
    the gpu or on host.
    """
    usual = [(0, MS, Tier.HOST, 65_536)] if from_host else []
    loads, random = Loads(), np.random.default_rng(9)
    for number, at_ns in arrivals(4, 25):
        if random.random() > 0.35:
            loads.serve(number, at_ns, [])
            continue
        ahead = at_ns - 2 * MS if is_ill(at_ns) else at_ns - 500 * MS
        loads.serve(number, at_ns, [(0, 80 * MS, Tier.NVME, 65_536)] if is_ill(at_ns) else usual)
        if prefetched and ahead > 0:
            own = PrefetchId(number)
            loads.events.append(PrefetchIssued(t_ns=ahead, prefetch=own, block=BlockId(number), src=Tier.NVME, dst=Tier.GPU))
            ready = loads.read(ahead, (0, 80 * MS), number, prefetch=own)
            loads.events.append(PrefetchReady(t_ns=ready, prefetch=own, block=BlockId(number)))
        else:
            loads.read(max(ahead, 0), (0, 80 * MS), number, ns=TENANT)
    return loads.events


def test_a_prefetch_that_a_request_overtakes_is_late() -> None:
    """Reads of what is on its way already are a late prefetch; the same reads without one are not."""
    assert first_code(overtaken(prefetched=True)) == "PREFETCH_LATE"
    assert first_code(overtaken(prefetched=False)) != "PREFETCH_LATE"


def test_a_late_prefetch_says_more_than_hits_that_moved_by_it() -> None:
    """What was not fetched into host in time is read where it lies: the prefetch failed, not host's room."""
    assert first_code(overtaken(prefetched=True, from_host=True)) == "PREFETCH_LATE"
    assert first_code(overtaken(prefetched=False, from_host=True)) == "HIT_RATE_MISLEADS"


def fetched_late(*, usually: float, ill: float) -> list[Event]:
    """Requests that read nvme, and wait there within the window; a share of them, usually and then, overtakes its prefetch."""
    loads, random = Loads(), np.random.default_rng(19)
    for number, at_ns in arrivals(4, 25):
        queue_ns = int(random.exponential(90 * MS)) if is_ill(at_ns) else 0
        reads = [(queue_ns, 20 * MS, Tier.NVME, 65_536)] if random.random() < 0.4 else []
        loads.serve(number, at_ns, reads)
        if reads and random.random() < (ill if is_ill(at_ns) else usually):
            own = PrefetchId(number)
            ahead = PrefetchIssued(t_ns=at_ns - 2 * MS, prefetch=own, block=BlockId(number), src=Tier.NVME, dst=Tier.GPU)
            ready = loads.read(at_ns - 2 * MS, (0, 80 * MS), number, prefetch=own)
            loads.events += [ahead, PrefetchReady(t_ns=ready, prefetch=own, block=BlockId(number))]
    return loads.events


@pytest.mark.parametrize(
    ("usually", "ill", "is_so"), [(0.0, 0.6, True), (0.6, 0.6, False), (0.0, 0.1, False)], ids=["late", "as ever", "few"]
)
def test_late_prefetches_are_a_cause_where_many_are_and_usually_few(usually: float, ill: float, is_so: bool) -> None:
    """What is late in quiet times as well explains no spike, nor do a few."""
    assert is_so is (first_code(fetched_late(usually=usually, ill=ill)) == "PREFETCH_LATE")


def moved(*, flooded: bool) -> list[Event]:
    """Within the window more is loaded from nvme and less from host, and one waits there; perhaps a neighbour reads in bulk."""
    loads, random = Loads(), np.random.default_rng(11)
    for number, at_ns in arrivals(6, 25):
        here, above = (110_000, 55_000) if is_ill(at_ns) else (65_000, 65_000)
        queue_ns = int(random.exponential(90 * MS)) if is_ill(at_ns) else 0
        reads = [(queue_ns, 10 * MS, Tier.NVME, here), (0, MS, Tier.HOST, above)]
        loads.serve(number, at_ns, reads if random.random() < 0.4 else [])
    for at_ns in range(WINDOW[0], WINDOW[1], SECOND // 100) if flooded else ():
        loads.read(at_ns, (80 * MS, 10 * MS), 900_000, ns=NEIGHBOUR)
    return loads.events


def test_hits_that_moved_do_not_explain_a_tier_with_far_more_to_do() -> None:
    """Where a neighbour's bulk reads are most of what nvme does, the queue is theirs; else it is the hits that moved."""
    assert first_code(moved(flooded=False)) == "HIT_RATE_MISLEADS"
    assert first_code(moved(flooded=True)) == "TIER_QUEUE"


def filled(*, leave: int = 1, is_written: bool = True, flooded: bool = False) -> list[Event]:
    """A run that began with empty pools: nvme gives nothing until host is full, then more and more, until one waits there.

    Within the window so many times as much may leave host; a neighbour may read in bulk.
    """
    loads, random = Loads(), np.random.default_rng(13)
    full_ns = 17 * SECOND
    for number, at_ns in arrivals(6, 25):
        share = min(max(at_ns - full_ns, 0) / (60 * SECOND - full_ns), 0.5)
        queue_ns = int(random.exponential(60 * MS)) if is_ill(at_ns) else 0
        reads = [(queue_ns, 20 * MS, Tier.NVME, 65_536) if random.random() < share else (0, 20 * MS, Tier.HOST, 65_536)]
        loads.serve(number, at_ns, reads if random.random() < 0.6 else [])
    for at_ns in range(full_ns, RUN_S * SECOND, SECOND // 20):
        for place in range(leave if is_ill(at_ns) else 1):
            loads.leave(at_ns + place, is_written=is_written or not place)
    for at_ns in range(WINDOW[0], WINDOW[1], SECOND // 100) if flooded else ():
        loads.read(at_ns, (80 * MS, 20 * MS), 900_000, ns=NEIGHBOUR)
    return loads.events


def test_hits_that_moved_while_pools_filled_for_the_first_time_accuse_nobody() -> None:
    """How it is once nvme holds what host has no room for is no fault, and a reader is told what the reference was."""
    answer = answer_to(filled())

    assert Outcome.UNDECIDED is answer.outcome
    assert ((), ("nvme was still filling while the reference lasted: compare with a later one",)) == (
        answer.verdicts,
        answer.notes,
    )


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "there already"])
def test_room_that_was_taken_is_a_cause_also_while_pools_fill(is_written: bool) -> None:
    """More leaves host than before, whether it is written to nvme or lies there already."""
    assert "HIT_RATE_MISLEADS" == first_code(filled(leave=4, is_written=is_written))


def test_others_work_is_a_cause_also_while_pools_fill() -> None:
    """A neighbour's bulk reads make the queue, not what nvme has come to hold."""
    answer = answer_to(filled(flooded=True))

    assert ["TIER_QUEUE"] == [verdict.code for verdict in answer.verdicts]
    assert answer.blame[0].share > 0.5


def test_stray_blocks_are_no_tier_that_fills() -> None:
    """A tier that gave next to nothing, and that at the end of the reference, did not fill: host lost its room."""
    loads, random = Loads(), np.random.default_rng(17)
    for number, at_ns in arrivals(6, 25):
        share = 0.5 if is_ill(at_ns) else 0.03 if at_ns > 20 * SECOND else 0.0
        queue_ns = int(random.exponential(60 * MS)) if is_ill(at_ns) else 0
        reads = [(queue_ns, 20 * MS, Tier.NVME, 65_536) if random.random() < share else (0, 20 * MS, Tier.HOST, 65_536)]
        loads.serve(number, at_ns, reads if random.random() < 0.6 else [])
    for at_ns in range(0, RUN_S * SECOND, SECOND // 20):
        loads.leave(at_ns)

    assert "HIT_RATE_MISLEADS" == first_code(loads.events)


def test_what_leaves_is_seen_on_whichever_side_the_reference_lies() -> None:
    """Evictions in window and reference count also where the reference comes after, and nothing is evicted between them."""
    gone = [*range(10, 20), *range(40, 60)]
    recording = SimpleNamespace(evicted=lambda span, _tier: sum(span[0] <= t_ns < span[1] for t_ns in gone))
    window, after = Window(10, 20, 100, 1.0), Window(40, 60, 100, 1.0)
    case: Any = SimpleNamespace(recording=recording, window=window, reference=after)

    assert 10 / 10e-9 == pytest.approx(_leaving_a_second(case, window, Tier.NVME))


def shared() -> list[Event]:
    """Requests wait by name for loads that nobody began for them; within the window a neighbour's reads stand before those."""
    loads, random = Loads(), np.random.default_rng(23)
    for number, at_ns in arrivals(6, 25):
        queue_ns = int(random.exponential(90 * MS)) if is_ill(at_ns) else 0
        req, begun_ns = RequestId(number), at_ns + MS // 3
        if random.random() < 0.4:
            loaded_ns = loads.read(begun_ns, (queue_ns, 10 * MS), number)
            wait = CopyWaited(t_ns=loaded_ns, req=req, wait_ns=loaded_ns - begun_ns, op=OpId(loads.ops), tier=Tier.NVME)
            loads.events += [RequestWaiting(t_ns=begun_ns, req=req, reason=WaitReason.KV_LOAD), wait]
        else:
            loaded_ns = begun_ns
        loads.events.append(RequestArrived(t_ns=at_ns, req=req, tokens=64, ns=TENANT, text=f"r{number}"))
        loads.events += step(number, loaded_ns, loaded_ns + 5 * MS)
    for at_ns in range(WINDOW[0], WINDOW[1], SECOND // 100):
        loads.read(at_ns, (80 * MS, 10 * MS), 900_000, ns=NEIGHBOUR)
    return loads.events


def test_a_queue_before_loads_of_others_has_an_owner() -> None:
    """Who waits by name for what others began stood in the queue all the same: verdict and blame say behind whom."""
    answer = answer_to(shared())

    assert ["TIER_QUEUE"] == [verdict.code for verdict in answer.verdicts]
    assert sum(row.waited_ns for row in answer.blame) > SECOND
