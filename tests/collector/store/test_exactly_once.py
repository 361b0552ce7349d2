"""Promises of storing: every event once, whatever the order, the overlap or the repetition of batches."""

from concurrent.futures import wait
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.store import Incoming, Receipt, Store
from kvtrail_collector.testing import memory_store

from tests.collector.frames import batch, span

CUTS = st.lists(
    st.tuples(
        st.sampled_from([("a", 0), ("a", 1), ("b", 0)]), st.sets(st.integers(1, 60), min_size=1, max_size=25).map(sorted)
    ),
    min_size=1,
    max_size=10,
)


def stored_seqs(store: Store) -> dict[tuple[str, int], list[int]]:
    """What the table of events really holds, by stream; a seq that is there twice stands here twice."""
    query = "SELECT engine, rank, list(seq ORDER BY seq) FROM events JOIN streams USING (stream_id) GROUP BY ALL"
    with store.read() as cursor:
        return {(engine, rank): seqs for engine, rank, seqs in cursor.execute(query).fetchall()}


def booked_seqs(store: Store) -> dict[tuple[str, int], list[int]]:
    """What the books say that it holds."""
    return {
        (account.stream.engine, account.stream.rank): [seq for first, last in account.stored for seq in span(first, last)]
        for account in store.accounts().values()
    }


@settings(max_examples=30)
@given(CUTS, st.booleans())
def test_each_event_is_stored_once(cuts: list[tuple[tuple[str, int], list[int]]], together: bool) -> None:
    """Random overlapping batches of three streams, one by one or in groups: table and books both hold each seq once."""
    expected: dict[tuple[str, int], set[int]] = {}
    for stream, seqs in cuts:
        expected.setdefault(stream, set()).update(seqs)
    with memory_store() as store:
        futures = []
        for (engine, rank), seqs in cuts:
            futures.append(store.submit(batch(seqs, engine=engine, rank=rank)))
            if not together:
                futures[-1].result()
        wait(futures)
        receipts = [future.result() for future in futures]

        assert {stream: sorted(seqs) for stream, seqs in expected.items()} == stored_seqs(store)
        assert stored_seqs(store) == booked_seqs(store)
        assert sum(len(seqs) for seqs in expected.values()) == sum(receipt.stored for receipt in receipts)
        assert sum(len(seqs) for _, seqs in cuts) == sum(sum(receipt) for receipt in receipts)


def test_a_batch_that_overlaps_keeps_its_new_rows() -> None:
    """Of a batch that begins in the middle of what is stored only the rest is added, and the receipt says so."""
    with memory_store() as store:
        store.submit(batch(span(1, 10))).result()

        assert Receipt(stored=5, duplicate=5) == store.submit(batch(span(6, 15))).result()
        assert Receipt(stored=0, duplicate=10) == store.submit(batch(span(1, 10))).result()
        assert {("engine", 0): list(span(1, 15))} == stored_seqs(store)


def test_a_hole_is_filled_by_a_late_batch() -> None:
    """A batch that comes after its successors lands in its place, and the ranges close over it."""
    with memory_store() as store:
        for seqs in (span(1, 4), span(9, 12), span(5, 8)):
            store.submit(batch(seqs)).result()

        assert [tuple(part) for account in store.accounts().values() for part in account.stored] == [(1, 12)]


def test_epochs_do_not_mix() -> None:
    """The same seqs of another epoch of the same engine are other events."""
    with memory_store() as store:
        receipts = [store.submit(batch(span(1, 3), epoch=epoch)).result() for epoch in (7, 8, 2**64 - 2)]

        assert [Receipt(stored=3, duplicate=0)] * 3 == receipts


def test_the_books_survive_a_reopening(private_dir: Path) -> None:
    """What was stored before a restart is known after it."""
    path = str(private_dir / "events.duckdb")
    with Store.open(path) as store:
        store.submit(batch(span(1, 10))).result()
        before = store.accounts()
    with Store.open(path) as store:
        assert before == store.accounts()
        assert Receipt(stored=2, duplicate=10) == store.submit(batch(span(1, 12))).result()


def test_nothing_is_stored_while_nothing_comes() -> None:
    """A store that hears nothing holds nothing."""
    with memory_store() as store:
        assert stored_seqs(store) == {}
        assert store.accounts() == {}


def test_a_heartbeat_stores_no_rows_and_raises_produced() -> None:
    """A batch without rows says how many were produced, and is acknowledged."""
    with memory_store() as store:
        beat: Incoming = batch([], produced=41)

        assert Receipt(stored=0, duplicate=0) == store.submit(beat).result()
        assert [account.marks.produced for account in store.accounts().values()] == [41]
