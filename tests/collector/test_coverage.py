"""Promises of coverage: the share of what happened that can be asked for."""

import pytest
from kvtrail_collector.coverage import coverage_of
from kvtrail_collector.loss_shapes import DropCount, Loss, StreamLoss


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
