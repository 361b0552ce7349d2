"""A spike is explained from kept ledgers and the rows of its windows as it is from all events."""

import msgspec
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.questions.attribution import attribute_stored, nearest_part
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.requests import find_request
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.questions.window_look import Look
from kvtrail_collector.questions.windows import WindowsRecording
from kvtrail_collector.testing import memory_store
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event, PrefetchIssued, PrefetchReady, PrefetchWasted, RequestArrived, SwapInQueued
from kvtrail_schema.identity import BlockId, OpId, PrefetchId, RequestId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import PrefetchWasteReason

from tests.collector.attribution.synthetic import Run
from tests.collector.frames import events_batch


def test_stored_is_what_events_say(slow_run: Run) -> None:
    """Windows, components with their intervals, blame, exemplars and verdicts."""
    with memory_store() as store:
        store.submit(events_batch(slow_run.numbered())).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            known = streams(cursor)
            stored, everything = attribute_stored(cursor, known), attribute(event_rows(cursor, known))

    assert everything.verdicts
    assert everything == stored


def test_an_exemplar_names_one_request(slow_run: Run) -> None:
    """Two ranks that both number from one have each number twice: an exemplar says whose it is, where it has no text."""
    with memory_store() as store:
        for rank in (0, 1):
            events = [nameless(event) for event in slow_run.numbered()]
            store.submit(events_batch(events, rank=rank)).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            known = streams(cursor)
            stored, everything = attribute_stored(cursor, known), attribute(event_rows(cursor, known))
            found = [find_request(cursor, name, None) for name in stored.exemplar_requests]

    assert stored.exemplar_requests == stored.exemplars == everything.exemplar_requests
    assert [f"{one.stream.epoch}:{one.stream.rank}:{one.request}" for one in found if one] == list(stored.exemplars)
    assert {0, 1} == {one.stream.rank for one in found if one}


def nameless(event: Event) -> Event:
    """An event of an engine that has no text for its requests."""
    return msgspec.structs.replace(event, text=None) if isinstance(event, RequestArrived) else event


def test_the_text_of_an_exemplar_is_what_people_read(slow_run: Run) -> None:
    """Beside it stands the name that is nobody else's."""
    named = [
        msgspec.structs.replace(event, text=f"chat-{event.req}") if isinstance(event, RequestArrived) else event
        for event in slow_run.numbered()
    ]
    with memory_store() as store:
        store.submit(events_batch(named)).result()
        with store.read() as cursor:
            found = attribute_stored(cursor, streams(cursor))

    assert found.exemplars
    assert [f"chat-{name.rpartition(':')[2]}" for name in found.exemplar_requests] == list(found.exemplars)


def test_what_was_fetched_ahead_is_seen_by_block() -> None:
    """Reads on demand of blocks that are being fetched ahead are there, with their blocks, and what became of it long after."""
    told: list[Event] = [
        RequestArrived(t_ns=5, req=RequestId(1), tokens=64),
        PrefetchIssued(t_ns=10, prefetch=PrefetchId(1), block=BlockId(5), src=Tier.NVME, dst=Tier.HOST),
        SwapInQueued(t_ns=20, op=OpId(1), block=BlockId(5), src=Tier.NVME, dst=Tier.HOST, req=RequestId(1)),
        SwapInQueued(t_ns=20, op=OpId(1), block=BlockId(6), src=Tier.NVME, dst=Tier.HOST, req=RequestId(1)),
        PrefetchReady(t_ns=30, prefetch=PrefetchId(1), block=BlockId(5)),
        PrefetchWasted(t_ns=10**11, prefetch=PrefetchId(1), block=BlockId(5), reason=PrefetchWasteReason.NEVER_NEEDED),
    ]
    with memory_store() as store:
        numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, start=1)]
        store.submit(events_batch(numbered)).result()
        with store.read() as cursor:
            known = streams(cursor)
            rows = WindowsRecording(Look.at(cursor, known, (0, 100)), stored_population(cursor, known)).rows
    ahead = rows.of_kinds(Kind.PREFETCH_ISSUED, Kind.PREFETCH_READY, Kind.SWAP_IN_QUEUED, Kind.PREFETCH_WASTED)

    assert [10, 20, 30, 10**11] == rows.t_ns[ahead].tolist()
    assert [5, 5, 5, 5] == rows.ids["block"][ahead].tolist()


def test_of_a_long_reference_the_nearest_part_is_usual(slow_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Excess and mix are those of all of it, and the verdict is the same; the events of its far part are not read."""
    with memory_store() as store:
        store.submit(events_batch(slow_run.numbered())).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            whole = attribute_stored(cursor, streams(cursor))
            monkeypatch.setattr(nearest_part, "__defaults__", (200,))
            part = attribute_stored(cursor, streams(cursor))
    one, other = whole.verdicts[0], part.verdicts[0]

    assert (whole.window, whole.reference, whole.components) == (part.window, part.reference, part.components)
    assert (one.code, one.tier, one.share, one.confidence) == (other.code, other.tier, other.share, other.confidence)
    assert float(one.evidence["reference_reads"]) > 2 * float(other.evidence["reference_reads"]) > 0
