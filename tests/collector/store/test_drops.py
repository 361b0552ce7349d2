"""Promises of declared drops: declaring one twice, in pieces, or in another order changes nothing."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.store.drops import merge_drops
from kvtrail_collector.testing import memory_store
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import EventsDropped
from kvtrail_schema.reasons import DropReason

from tests.collector.frames import batch, dropped, events_batch, span

DROPS = st.builds(
    lambda stage, first, length, count: dropped(first, first + length, count=min(count, length + 1), stage=stage),
    st.sampled_from([Stage.RING, Stage.SPOOL]),
    st.integers(1, 40),
    st.integers(0, 6),
    st.integers(1, 8),
)


@given(st.lists(DROPS, max_size=8), st.randoms(use_true_random=False))
def test_merging_knows_no_order_and_no_repetition(drops: list[DropRange], random: Random) -> None:
    """Any order, any repetition, any grouping: one normal form."""
    shuffled = sorted([*drops, *drops[:3]], key=lambda _: random.random())

    assert merge_drops(drops) == merge_drops(shuffled)
    assert merge_drops(drops) == merge_drops([*merge_drops(drops[:4]), *merge_drops(drops[4:])])


def test_neighbouring_drops_become_one() -> None:
    """Exact declarations of one stage and reason that touch merge; those of another stage do not."""
    drops = [dropped(1, 5), dropped(6, 9), dropped(10, 12, stage=Stage.SPOOL)]

    assert (dropped(1, 9), dropped(10, 12, stage=Stage.SPOOL)) == merge_drops(drops)


def test_drops_come_in_headers_and_in_events() -> None:
    """Both ways of declaring meet in the same books."""
    told = EventsDropped(seq=1, t_ns=1, stage=Stage.RING, reason=DropReason.FULL, first_seq=2, last_seq=4, count=3)
    with memory_store() as store:
        store.submit(events_batch([told])).result()
        store.submit(batch([9], drops=(dropped(5, 8),))).result()

        assert [(dropped(2, 8),)] == [account.drops for account in store.accounts().values()]


def test_a_declaration_without_sense_declares_nothing() -> None:
    """A range that ends before it begins is kept as an event and left out of the books."""
    told = EventsDropped(seq=1, t_ns=1, stage=Stage.RING, reason=DropReason.FULL, first_seq=9, last_seq=4, count=3)
    with memory_store() as store:
        store.submit(events_batch([told])).result()

        assert [account.drops for account in store.accounts().values()] == [()]
        assert [account.stored.size for account in store.accounts().values()] == [1]


def test_drops_survive_a_restart_in_their_normal_form() -> None:
    """What is written is what is read: the table holds the same declarations as the books."""
    with memory_store() as store:
        for drops in ((dropped(1, 5),), (dropped(3, 9),), (dropped(20, 29, count=4),)):
            store.submit(batch(span(30, 31), drops=drops)).result()
        with store.read() as cursor:
            rows = cursor.execute("SELECT first_seq, last_seq, count FROM drop_ranges ORDER BY ALL").fetchall()

        assert rows == [(1, 9, 9), (20, 29, 4)]
