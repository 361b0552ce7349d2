"""Whose times are compared: those of one engine and one clock, and what is said of the others."""

from collections.abc import Iterator

import msgspec
import pytest
from kvtrail_collector.questions.clocks import FEW_REQUESTS, one_clock
from kvtrail_collector.questions.engines import engines_known
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.store import Incoming, Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema import events as e
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.identity import RequestId

from tests.collector.frames import HEARD_NS, header, table
from tests.collector.pages.story import SECOND

BOOT_NS = 900_000 * SECOND
"""How far the first boot's clock had come when the second began."""


def told(store: Store, engine: str, epoch: int, requests: int, *, first_ns: int, booted_wall_ns: int) -> None:
    """So many requests, one a second, of an engine whose clock began at a moment."""
    arrivals = [e.RequestArrived(req=RequestId(n), tokens=1, t_ns=first_ns + n * SECOND) for n in range(1, requests + 1)]
    events = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(arrivals, 1)]
    now_ns = events[-1].t_ns
    clocks = Clocks(monotonic_ns=now_ns, wall_ns=booted_wall_ns + now_ns, error_ns=1)
    head = msgspec.structs.replace(header([event.seq for event in events], engine=engine, epoch=epoch), clocks=clocks)
    store.submit(Incoming(DecodedBatch(head, table(events)), booted_wall_ns + now_ns)).result()


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """An engine before and after its host started anew, another that has more to do, and one that has just begun anew."""
    with memory_store() as filled:
        told(filled, "anew", 1, 100, first_ns=BOOT_NS, booted_wall_ns=HEARD_NS - BOOT_NS)
        told(filled, "anew", 2, FEW_REQUESTS, first_ns=0, booted_wall_ns=HEARD_NS + 3_600 * SECOND)
        told(filled, "anew", 3, 2, first_ns=100 * SECOND, booted_wall_ns=HEARD_NS + 3_600 * SECOND)
        told(filled, "busy", 4, 300, first_ns=0, booted_wall_ns=HEARD_NS)
        told(filled, "begun", 5, 100, first_ns=BOOT_NS, booted_wall_ns=HEARD_NS - BOOT_NS)
        told(filled, "begun", 6, 2, first_ns=0, booted_wall_ns=HEARD_NS + 3_600 * SECOND)
        yield filled


def epochs(store: Store, engine: str | None = None, window: tuple[int, int] | None = None) -> tuple[list[int], int]:
    """Which epochs are chosen, and how many notes tell of others."""
    with store.read() as cursor:
        found = one_clock(cursor, [one for one in streams(cursor) if engine in {None, one.engine}], window)
    return sorted(one.epoch for one in found.streams), len(found.notes)


def test_what_runs_now_is_what_is_meant(store: Store) -> None:
    """All processes since the host started, and none from before; which are told of, not forgotten."""
    assert ([2, 3], 1) == epochs(store, "anew")


def test_a_window_means_the_clock_that_has_it(store: Store) -> None:
    """A stretch of time of before the host started anew is looked at there."""
    assert ([1], 1) == epochs(store, "anew", (BOOT_NS, BOOT_NS + 50 * SECOND))


def test_after_a_start_there_is_nothing_to_explain_yet(store: Store) -> None:
    """So few requests are no reason to look away from what went before."""
    assert ([5], 1) == epochs(store, "begun")


def test_engines_are_not_mixed(store: Store) -> None:
    """Whoever names none gets the busiest, and is told so."""
    assert ([4], 1) == epochs(store)
    assert ([4], 0) == epochs(store, "busy")


def test_the_newest_moment_is_one_of_the_clock_that_runs(store: Store) -> None:
    """*The last minutes* of an engine are not those of before its host started anew."""
    with store.read() as cursor:
        (row,) = (one for one in engines_known(cursor, {}, {}).engines if one.engine == "anew")

    assert (SECOND, 102 * SECOND) == (row.first_ns, row.last_ns)
    assert 100 + FEW_REQUESTS + 2 == row.requests
