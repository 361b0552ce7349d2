"""None, one or many observers, and the one that collects."""

import pytest
from kvtrail_engine.observers import emitter_of
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import RequestArrived, StepStarted
from kvtrail_schema.identity import BlockId, RequestId, Slot, StepId


def test_without_observers_nothing_records() -> None:
    """Seq 0 says that nobody was told."""
    assert emitter_of([]).step_started(StepId(1)) == 0


def test_one_observer_is_called_itself() -> None:
    """There is nothing between an engine and its only observer."""
    only = CollectingEmitter().as_emitter()

    assert emitter_of([only]) is only


def test_all_observers_hear_the_same() -> None:
    """A fan-out tells everybody, in order."""
    both = [CollectingEmitter(), CollectingEmitter()]
    emitter_of([each.as_emitter() for each in both]).step_started(StepId(4), 9)

    assert [each.events for each in both] == [[StepStarted(seq=1, t_ns=9, step=StepId(4))]] * 2


def test_absent_arguments_are_absent_fields() -> None:
    """What an emit call leaves out, or passes as absent, the event does not have."""
    collecting = CollectingEmitter()
    collecting.as_emitter().request_arrived(RequestId(1), 5, NO_U64, "", t_ns=3)

    assert collecting.events == [RequestArrived(seq=1, t_ns=3, req=RequestId(1), tokens=5)]


def test_a_field_that_the_kind_does_not_have_is_an_error() -> None:
    """A typo in a test's emit call does not pass in silence."""
    collecting = CollectingEmitter()
    with pytest.raises(TypeError, match="wrong"):
        collecting.block_created(BlockId(1), Tier.GPU, Slot(1), wrong=1)
    with pytest.raises(AttributeError):
        collecting.no_such_kind  # noqa: B018 - reading it is the test
