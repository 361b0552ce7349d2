"""What holds an engine back is what holds back the process that runs now, and no wish that was granted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from kvtrail_collector.questions.pressure import pressure
from kvtrail_collector.questions.scope import EARLIEST_NS, LATEST_NS, Chosen
from kvtrail_collector.store import Incoming, Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BackpressureOn, DegradeApplied, DegradeCleared, DegradeRequested, Event
from kvtrail_schema.identity import EventId
from kvtrail_schema.reasons import BackpressureReason

from tests.collector.frames import header, table

ASKED = DegradeRequested(seq=1, t_ns=1, text="stop_prefetch", id=EventId(1))
APPLIED = DegradeApplied(seq=2, t_ns=2, text="stop_prefetch", id=EventId(2), cause=EventId(1))
ASKED_BACK = DegradeRequested(seq=3, t_ns=3, text="release stop_prefetch", id=EventId(3))
CLEARED = DegradeCleared(seq=4, t_ns=4, text="stop_prefetch", id=EventId(4), cause=EventId(3))


def tell(store: Store, events: Sequence[Event], epoch: int = 1) -> None:
    """Store what a process told."""
    head = header([event.seq for event in events], epoch=epoch)
    store.submit(Incoming(DecodedBatch(head, table(events)), 0)).result(10)


def held_back(store: Store) -> tuple[list[tuple[str, str]], list[str]]:
    """Actions with their state, and tiers that push back."""
    with store.read() as cursor:
        streams = [number for (number,) in cursor.execute("SELECT stream_id FROM streams").fetchall()]
        found = pressure(
            cursor, Chosen(streams, every_namespace=True, namespaces=[], start_ns=EARLIEST_NS, end_ns=LATEST_NS), None
        )
    return [(one.action, one.state) for one in found.degrade], [one.tier for one in found.backpressure]


def test_an_action_that_was_released_holds_nothing_back() -> None:
    """Nor does the wish to release it, which is told like any other."""
    with memory_store() as store:
        tell(store, [ASKED, APPLIED])
        assert [("stop_prefetch", "applied")] == held_back(store)[0]

        tell(store, [ASKED_BACK, CLEARED])
        assert [] == held_back(store)[0]


def test_a_process_that_has_ended_is_not_held_back() -> None:
    """An engine that was killed while it was degraded, or pushed back, comes back as it is now."""
    pushes = BackpressureOn(seq=3, t_ns=3, tier=Tier.NVME, reason=next(iter(BackpressureReason)))
    with memory_store() as store:
        tell(store, [ASKED, APPLIED, pushes], epoch=1)
        assert ([("stop_prefetch", "applied")], ["nvme"]) == held_back(store)

        tell(store, [msgspec.structs.replace(ASKED, t_ns=4)], epoch=2)
        assert ([("stop_prefetch", "requested")], []) == held_back(store)


def test_a_process_whose_words_came_late_is_not_the_one_that_runs() -> None:
    """What an ended one had kept on disk comes after the first words of the next one, and is what it was."""
    with memory_store() as store:
        tell(store, [msgspec.structs.replace(ASKED, t_ns=9)], epoch=2)
        tell(store, [ASKED, APPLIED], epoch=1)

        assert [("stop_prefetch", "requested")] == held_back(store)[0]
