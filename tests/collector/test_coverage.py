"""Promises of coverage: the share of what happened that can be asked for."""

import pytest
from kvtrail_collector.coverage import coverage_of
from kvtrail_collector.loss import loss_of
from kvtrail_collector.loss_shapes import DropCount, Loss, StreamLoss
from kvtrail_collector.store.account import Account, Marks
from kvtrail_collector.store.ranges import RangeSet, SeqRange
from kvtrail_schema.batch import DropRange, StreamState
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.reasons import DropReason

HALVES = ((1, 10), (31, 80))


@pytest.mark.parametrize(
    ("covered", "stored", "dropped"),
    [
        (1.0, 1_000, ()),
        (0.75, 750, (DropCount("ring", "full", 250),)),
        (1.0, 400, (DropCount("collector", "retention", 600),)),
        (0.8, 400, (DropCount("collector", "retention", 500), DropCount("ring", "full", 100))),
        (1.0, 0, (DropCount("collector", "retention", 1_000),)),
    ],
    ids=["all", "lost", "expired", "both", "all expired"],
)
def test_what_expired_was_never_lost(covered: float, stored: int, dropped: tuple[DropCount, ...]) -> None:
    """A store that lets the oldest go sees all of what it still has; what was lost on the way is lost as before."""
    stream = StreamLoss("e", 1, 0, 1_000, stored, dropped, 0, 0, ())

    assert covered == coverage_of(Loss((stream,), balanced=True))


def test_what_was_lost_before_all_that_is_stored_hides_nothing() -> None:
    """Of a drop before the horizon of retention and one after it, the latter alone is missing from what can be asked for."""
    gone = (DropRange(Stage.RING, DropReason.FULL, 11, 30, 20), DropRange(Stage.RING, DropReason.FULL, 91, 95, 5))
    expired = [DropRange(Stage.COLLECTOR, DropReason.RETENTION, first, last, last - first + 1) for first, last in HALVES]
    stored = RangeSet((SeqRange(81, 90), SeqRange(96, 100)))
    marks = Marks(100, StreamState.RUNNING, 0, Clocks(monotonic_ns=0, wall_ns=0, error_ns=0))
    loss = loss_of([Account(1, Stream("e", Epoch(1), Rank(0)), stored, (*gone, *expired), marks)], now_wall_ns=2**62)

    assert (20, 60, 25) == (loss.streams[0].lost_before_stored, loss.streams[0].expired, loss.streams[0].lost)
    assert 15 / 20 == coverage_of(loss)
