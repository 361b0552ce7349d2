"""Promises of the projections: right rows however events are cut and ordered, and the same rows after a rebuild."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_collector.projections import OpOutcome
from kvtrail_collector.store import Incoming, Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    Event,
    RequestArrived,
    RequestCancelled,
    RequestFinished,
    SwapInFailed,
    SwapInLoaded,
    SwapInQueued,
    SwapOutSkipped,
)
from kvtrail_schema.identity import OpId, RequestId
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import CancelReason, SwapInFailReason, SwapOutSkipReason

from tests.collector.frames import batch, events_batch, span

Row = tuple[object, ...]
EVENTS = 40


def rows(store: Store, table: str) -> list[Row]:
    """All rows of a projection, in one order."""
    with store.read() as cursor:
        return cursor.execute(f"FROM {table} ORDER BY ALL").fetchall()


def projected(batches: Sequence[Incoming]) -> tuple[list[Row], list[Row]]:
    """Both projections after some batches, one commit each."""
    with memory_store() as store:
        for incoming in batches:
            store.submit(incoming).result()
        return rows(store, "requests"), rows(store, "ops")


def ops_of(*events: Event) -> list[Row]:
    """Bytes, closing time and outcome of all ops after some events, one commit each."""
    with memory_store() as store:
        for event in events:
            store.submit(events_batch([event])).result()
        with store.read() as cursor:
            return cursor.execute("SELECT bytes, closed_ns, outcome FROM ops").fetchall()


def test_a_request_is_one_row() -> None:
    """Arrival, admission, first token and end of one request meet in its row."""
    requests, _ = projected([batch(span(1, 8))])

    assert [(1, 0, "r-0", None, 1_000, 6_000, 7_000, 8_000, Kind.REQUEST_FINISHED.value, 100, 7)] == requests


def test_an_op_is_one_row() -> None:
    """Its bytes are the sum over its blocks, its parts stand once, its tier is the slower end, it ends with its last block."""
    _, ops = projected([batch(span(1, 8))])
    places = (None, Tier.NVME.value, Tier.GPU.value, Tier.NVME.value)
    parts = (1_000, None, None, 500, None, None)

    assert [(1, 0, 0, *places, 2_000, 3_000, 5_000, *parts, 30, OpOutcome.DONE.value)] == ops


@settings(max_examples=15)
@given(st.permutations(list(span(1, EVENTS))), st.lists(st.integers(1, EVENTS - 1), max_size=6))
def test_cut_and_order_do_not_matter(order: list[int], cuts: list[int]) -> None:
    """Events in any order and in any batches, some of them twice, project to the rows of one batch in order."""
    bounds = [0, *sorted(set(cuts)), EVENTS]
    pieces = [sorted(order[low:high]) for low, high in pairwise(bounds)]

    assert projected([batch(span(1, EVENTS))]) == projected([batch(piece) for piece in [*pieces, pieces[0]]])


@settings(max_examples=10)
@given(st.lists(st.sets(st.integers(1, EVENTS), min_size=1, max_size=12).map(sorted), min_size=1, max_size=5))
def test_a_rebuild_gives_the_same_rows(cuts: list[list[int]]) -> None:
    """Dropping the projections and computing them from events again changes no row."""
    with memory_store() as store:
        for seqs in cuts:
            store.submit(batch(seqs)).result()
        before = rows(store, "requests"), rows(store, "ops")
        store.rebuild().result()

        assert before == (rows(store, "requests"), rows(store, "ops"))


def test_a_rebuild_mends_what_was_damaged() -> None:
    """Rows that do not follow from the events are gone after a rebuild, and missing ones are back."""
    with memory_store() as store:
        store.submit(batch(span(1, EVENTS))).result()
        before = rows(store, "requests")
        with store.read() as cursor:
            cursor.execute("UPDATE requests SET arrived_ns = 0 WHERE req = 1")
            cursor.execute("DELETE FROM requests WHERE req = 2")
        store.rebuild().result()

        assert before == rows(store, "requests")


def test_the_first_end_of_a_request_counts() -> None:
    """A request that was cancelled and then finished ended when it was cancelled, in whichever order the news came."""
    arrived = RequestArrived(seq=1, t_ns=10, req=RequestId(1), tokens=5)
    cancelled = RequestCancelled(seq=2, t_ns=20, req=RequestId(1), reason=CancelReason.CLIENT)
    finished = RequestFinished(seq=3, t_ns=30, req=RequestId(1), tokens=9)
    forward, _ = projected([events_batch([event]) for event in (arrived, cancelled, finished)])
    backward, _ = projected([events_batch([event]) for event in (finished, cancelled, arrived)])

    assert forward == backward
    assert (20, Kind.REQUEST_CANCELLED.value) == forward[0][7:9]


def test_one_failed_block_makes_a_failed_op() -> None:
    """An op of which a block failed has failed, and counts the bytes of the blocks that came."""
    op, src, dst = OpId(1), Tier.HOST, Tier.GPU
    queued = SwapInQueued(seq=1, t_ns=1, op=op, src=src, dst=dst)
    loaded = SwapInLoaded(seq=2, t_ns=2, op=op, src=src, dst=dst, bytes=4)
    failed = SwapInFailed(seq=3, t_ns=3, op=op, src=src, dst=dst, reason=SwapInFailReason.IO, bytes=8)

    assert [(4, 3, OpOutcome.FAILED.value)] == ops_of(queued, loaded, failed)
    assert [(4, 3, OpOutcome.FAILED.value)] == ops_of(failed, queued, loaded)


def test_an_open_op_and_a_skipped_one_are_told_apart() -> None:
    """An op that only queued is open; one that was not made is skipped."""
    queued = SwapInQueued(seq=1, t_ns=1, op=OpId(1), src=Tier.HOST, dst=Tier.GPU)
    skipped = SwapOutSkipped(
        seq=1, t_ns=5, op=OpId(1), src=Tier.GPU, dst=Tier.HOST, reason=SwapOutSkipReason.ALREADY_STORED, bytes=4
    )

    assert [(0, None, OpOutcome.OPEN.value)] == ops_of(queued)
    assert [(0, 5, OpOutcome.SKIPPED.value)] == ops_of(skipped)


def test_sums_saturate_instead_of_failing() -> None:
    """Sizes that no disk has do not make a commit fail."""
    huge = 2**64 - 2
    events = [SwapInLoaded(seq=seq, t_ns=seq, op=OpId(1), src=Tier.NVME, dst=Tier.GPU, bytes=huge) for seq in (1, 2)]

    assert [(2**64 - 1, 2, OpOutcome.DONE.value)] == ops_of(*events)
