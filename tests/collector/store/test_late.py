"""The promise of rows that come in order: they touch nothing that is kept, however a stream is cut into batches."""

from itertools import pairwise
from typing import Any

from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Event,
    RequestArrived,
    RequestFirstToken,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
)
from kvtrail_schema.identity import OpId, RequestId, StepId

from tests.collector.ledger.homes import Home, Now
from tests.collector.ledger.stories import numbered

LIFE_NS = 1_000


def life(number: int) -> list[Event]:
    """A request with a load that names nobody and a step, after all before it, with a pause between them."""
    start = 5 * LIFE_NS * number
    op: dict[str, Any] = {"op": OpId(number), "src": Tier.NVME, "dst": Tier.GPU}
    return [
        RequestArrived(t_ns=start, req=RequestId(number), tokens=10),
        SwapInQueued(t_ns=start + 100, **op),
        SwapInLoaded(t_ns=start + 200, io_ns=50, **op),
        StepStarted(t_ns=start + 300, step=StepId(number)),
        RequestFirstToken(t_ns=start + 400, req=RequestId(number)),
        StepFinished(t_ns=start + 500, step=StepId(number), tokens=1),
    ]


def waiting(store: Store) -> tuple[set[int], int]:
    """The requests that are to be computed, and how many transfers came late."""
    with store.read() as cursor:
        requests = cursor.execute("SELECT req FROM touched_requests").fetchall()
        return {int(row[0]) for row in requests}, len(cursor.execute("FROM touched_ops").fetchall())


def test_rows_in_order_touch_nothing_that_is_kept() -> None:
    """Whether a batch begins between requests, within a transfer, or within a step."""
    events = numbered([event for number in range(1, 6) for event in life(number)])
    cuts = [0, 12, 14, 16, 22, len(events)]
    with memory_store() as store:
        home, keeper = Home(store, "engine"), LedgerKeeper(store, Now(10**30))
        home.send(events[: cuts[1]])
        keeper.run_once()
        found = []
        for low, high in pairwise(cuts[1:]):
            home.send(events[low:high])
            found.append(waiting(store))

    assert [({3}, 0), ({3}, 0), ({3, 4}, 0), ({3, 4, 5}, 0)] == found
