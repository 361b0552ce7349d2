"""Promises of kept ledgers where rows come late that name no request, each at one plain story."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from kvtrail_collector import ledger_pass
from kvtrail_collector.ledger_accounts import account
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.testing import memory_store
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    ClockStepped,
    CopyWaited,
    Event,
    PrefetchUsed,
    RequestAdmitted,
    RequestArrived,
    RequestFirstToken,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
)
from kvtrail_schema.identity import BlockId, OpId, PrefetchId, RequestId, Seq, StepId

from tests.collector.ledger.homes import Home, Now

ONE = RequestId(1)
ARRIVED = RequestArrived(seq=Seq(1), t_ns=0, req=ONE, tokens=10)
ADMITTED = RequestAdmitted(seq=Seq(2), t_ns=20, req=ONE)
FIRST_TOKEN = RequestFirstToken(seq=Seq(4), t_ns=300, req=ONE)
OP = OpId(91)
LOAD: dict[str, Any] = {"op": OP, "src": Tier.NVME, "dst": Tier.GPU}


def step_rows(step: int, start_ns: int, end_ns: int, seq: int) -> list[Event]:
    """A step that began and ended."""
    started = StepStarted(seq=Seq(seq), t_ns=start_ns, step=StepId(step))
    return [started, StepFinished(seq=Seq(seq + 1), t_ns=end_ns, step=StepId(step), tokens=1)]


STORIES: dict[str, tuple[Event, list[Event]]] = {
    "load of a prefetch that it used": (
        PrefetchUsed(seq=Seq(3), t_ns=250, prefetch=PrefetchId(7), block=BlockId(1), req=ONE),
        [SwapInLoaded(seq=Seq(5), t_ns=90, prefetch=PrefetchId(7), io_ns=50, **LOAD)],
    ),
    "load that it waited for by name": (
        CopyWaited(seq=Seq(3), t_ns=200, req=ONE, wait_ns=100, op=OP),
        [SwapInLoaded(seq=Seq(5), t_ns=30, io_ns=10, **LOAD)],
    ),
    "end of its own load, which does not name it": (
        SwapInQueued(seq=Seq(3), t_ns=30, req=ONE, **LOAD),
        [SwapInLoaded(seq=Seq(5), t_ns=400, io_ns=100, queue_ns=270, **LOAD)],
    ),
    "step of others": (ADMITTED, step_rows(1, 100, 200, seq=5)),
    "step that was open, and ends": (
        StepStarted(seq=Seq(3), t_ns=50, step=StepId(1)),
        [StepFinished(seq=Seq(5), t_ns=200, step=StepId(1), tokens=1)],
    ),
    "step behind one that never ended": (StepStarted(seq=Seq(3), t_ns=50, step=StepId(1)), step_rows(2, 900, 950, seq=5)),
    "hole": (ADMITTED, [ClockStepped(seq=Seq(9), t_ns=100, value=20_000_000)]),
}


def told(third: Event) -> list[Event]:
    """A request of which one more thing is told in time; where that is its admission, seqs have no hole for another."""
    rows = [ARRIVED, ADMITTED, third, FIRST_TOKEN]
    return (
        rows if third is not ADMITTED else [ARRIVED, ADMITTED, StepStarted(seq=Seq(3), t_ns=299, step=StepId(9)), FIRST_TOKEN]
    )


@pytest.mark.parametrize("story", STORIES)
def test_a_late_row_is_in_the_next_answer(story: str) -> None:
    """Whoever reads after it sees what it changed, before the keeper saw it and after."""
    third, late = STORIES[story]
    with memory_store() as store:
        home, keeper = Home(store, "engine"), LedgerKeeper(store, Now(10**30))
        home.send(told(third))
        keeper.run_once()
        before = home.from_ledgers()
        home.send(late)
        soon = home.from_ledgers()
        keeper.run_once()
        keeper.run_once()

        assert before != soon
        assert home.from_events() == soon
        assert soon == home.from_ledgers()


@pytest.mark.parametrize("story", [name for name in STORIES if name != "hole"])
def test_a_row_that_comes_while_ledgers_are_computed(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missed by that computation, and so its requests are computed again."""
    third, late = STORIES[story]
    with memory_store() as store:
        home = Home(store, "engine")
        home.send(told(third))
        with monkeypatch.context() as patched:
            patched.setattr(ledger_pass, "account", once_after(lambda: home.send(late), account))
            keeper = LedgerKeeper(store, Now(10**30))
            keeper.run_once()
        soon = home.from_ledgers()
        keeper.run_once()
        keeper.run_once()

        assert home.from_events() == soon
        assert soon == home.from_ledgers()


def once_after(then: Callable[[], None], real: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    """The real function, with something that happens between its first answer and its return."""

    def computed(*args: Any) -> pa.Table:
        """Compute, then let it happen."""
        answer = real(*args)
        then()
        return answer

    return computed
