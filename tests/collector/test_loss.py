"""Promises of the balance: produced = stored + dropped + in flight + unaccounted, and each seq counts once."""

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.loss import FRESH_NS, loss_of
from kvtrail_collector.loss_shapes import DropCount, Loss, StreamLoss
from kvtrail_collector.store import Incoming
from kvtrail_collector.testing import memory_store
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import AgentHeartbeat, AgentStopped
from kvtrail_schema.reasons import AgentReason

from tests.collector.frames import HEARD_NS, batch, dropped, events_batch, span

LATER_NS = HEARD_NS + FRESH_NS
DROPS = st.builds(
    lambda stage, first, length: dropped(first, first + length, stage=stage),
    st.sampled_from([Stage.RING, Stage.TRANSPORT]),
    st.integers(1, 50),
    st.integers(0, 9),
)


def balance(*batches: Incoming, now_ns: int = LATER_NS) -> Loss:
    """The balance of what some batches left in a store."""
    with memory_store() as store:
        for incoming in batches:
            store.submit(incoming).result()
        return loss_of(store.accounts().values(), now_ns)


def only(loss: Loss) -> StreamLoss:
    """The one stream of a balance."""
    (stream,) = loss.streams
    return stream


def test_all_stored_balances() -> None:
    """What came whole has nothing dropped and nothing unaccounted for."""
    loss = balance(batch(span(1, 10)), batch(span(11, 20)))

    assert StreamLoss("engine", 7, 0, 20, 20, (), 0, 0, ()) == only(loss)
    assert loss.balanced


def test_a_stolen_batch_is_an_alarm_at_once() -> None:
    """A hole between stored rows that nobody declared is named, however fresh the stream is."""
    for now_ns in (HEARD_NS, LATER_NS):
        loss = balance(batch(span(1, 10)), batch(span(21, 30)), now_ns=now_ns)

        assert (only(loss).unaccounted, only(loss).gaps, loss.balanced) == (10, ((11, 20),), False)


def test_a_stolen_last_batch_is_an_alarm_once_the_heartbeat_is_gone() -> None:
    """The tail that was produced and did not come is on its way while the agent speaks, and missing after it fell silent."""
    batches = (batch(span(1, 10)), batch([], produced=25))
    fresh, stale = balance(*batches, now_ns=LATER_NS - 1), balance(*batches, now_ns=LATER_NS)

    assert (only(fresh).in_flight, only(fresh).unaccounted, fresh.balanced) == (15, 0, True)
    assert (only(stale).in_flight, only(stale).unaccounted, only(stale).gaps, stale.balanced) == (0, 15, ((11, 25),), False)


def test_declared_drops_balance() -> None:
    """Holes that a stage declared are dropped, by stage and reason, and no alarm."""
    drops = (dropped(11, 20), dropped(21, 24, stage=Stage.TRANSPORT))
    loss = balance(batch(span(1, 10)), batch(span(25, 30), drops=drops))

    assert (DropCount("ring", "full", 10), DropCount("transport", "full", 4)) == only(loss).dropped
    assert (only(loss).produced, only(loss).stored, only(loss).unaccounted, loss.balanced) == (30, 16, 0, True)


def test_what_was_declared_dropped_and_came_after_all_is_stored() -> None:
    """A seq that is both stored and declared dropped counts as stored, once."""
    loss = balance(batch(span(1, 10), drops=(dropped(8, 12),)), batch(span(13, 14)))

    assert (12, (DropCount("ring", "full", 2),), 0) == (only(loss).stored, only(loss).dropped, only(loss).unaccounted)


def test_a_seq_that_two_stages_declare_counts_once() -> None:
    """Overlapping declarations of two stages do not make the drops exceed the holes."""
    drops = (dropped(1, 10), dropped(5, 12, stage=Stage.SPOOL))
    loss = balance(batch(span(13, 14), drops=drops))

    assert (DropCount("ring", "full", 10), DropCount("spool", "full", 2)) == only(loss).dropped
    assert only(loss).unaccounted == 0


def test_a_sparse_declaration_explains_no_more_than_its_count() -> None:
    """A range of which three were dropped does not hide the theft of a fourth."""
    loss = balance(batch([1, 2, 3, 5, 10], drops=(dropped(4, 9, count=3),)))

    assert (DropCount("ring", "full", 3),) == only(loss).dropped
    assert (only(loss).unaccounted, loss.balanced) == (2, False)


def test_heartbeats_in_the_stream_raise_produced() -> None:
    """What `agent_heartbeat` and `agent_stopped` say of the highest seq counts like a header."""
    beat = AgentHeartbeat(seq=1, t_ns=1, reason=AgentReason.RECORDER, produced=30)
    stop = AgentStopped(seq=2, t_ns=2, reason=AgentReason.SHIPPER, produced=40)

    assert only(balance(events_batch([beat]))).produced == 30
    assert only(balance(events_batch([beat, stop]))).produced == 40


def test_ranks_and_epochs_balance_each_on_its_own() -> None:
    """One stream's surplus never covers another's loss."""
    loss = balance(batch(span(1, 5)), batch(span(2, 5), rank=1), batch(span(1, 5), epoch=8))

    assert [(one.epoch, one.rank, one.unaccounted) for one in loss.streams] == [(7, 0, 0), (7, 1, 1), (8, 0, 0)]
    assert not loss.balanced


def test_nothing_heard_balances() -> None:
    """A collector that never heard of anybody has lost nothing."""
    assert Loss(streams=(), balanced=True) == loss_of((), LATER_NS)


@settings(max_examples=40)
@given(st.sets(st.integers(1, 60), min_size=1).map(sorted), st.lists(DROPS, max_size=5), st.integers(0, 70), st.booleans())
def test_the_sum_holds_always(seqs: list[int], drops: list[DropRange], produced: int, fresh: bool) -> None:
    """For any stored set and any declarations the parts add up to what was produced, and gaps have the alarm's size."""
    own = only(balance(batch(seqs, drops=tuple(drops), produced=produced), now_ns=HEARD_NS if fresh else LATER_NS))

    assert own.produced == own.stored + sum(drop.count for drop in own.dropped) + own.in_flight + own.unaccounted
    assert own.unaccounted == sum(last - first + 1 for first, last in own.gaps)
    assert own.unaccounted >= 0
