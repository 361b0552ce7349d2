"""Promises of a block's life: where its copies were, what ended them, why, and what cannot be known."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kvtrail_collector.block_life import BlockLife, CopyState
from kvtrail_collector.questions.block import block_life
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_schema.jsonl import id_of, read_lines

from tests.collector.frames import events_batch

MS = 1_000_000
BLOCK = id_of("b")
STORY = [
    '{"seq": 1, "t_ms": 0, "kind": "block_created", "block": "b", "tier": "gpu", "slot": 3}',
    '{"seq": 2, "t_ms": 5, "kind": "swap_out_queued", "op": 1, "src": "gpu", "dst": "host", "block": "b"}',
    '{"seq": 3, "t_ms": 9, "kind": "swap_out_written", "op": 1, "src": "gpu", "dst": "host", "block": "b", "slot": 8}',
    '{"seq": 4, "t_ms": 12, "kind": "backpressure_on", "tier": "nvme", "reason": "disk_queue", "id": 70}',
    '{"seq": 5, "t_ms": 13, "kind": "evicted", "block": "b", "tier": "gpu", "slot": 3, "reason": "capacity", "cause": 70}',
    '{"seq": 6, "t_ms": 20, "kind": "block_created", "block": "other", "tier": "gpu", "slot": 3}',
    '{"seq": 9, "t_ms": 40, "kind": "attention_read", "req": "r", "block": "other", "tier": "gpu", "slot": 3}',
    '{"seq": 10, "t_ms": 50, "kind": "swap_in_loaded", "op": 2, "src": "host", "dst": "gpu", "block": "b", "slot": 4}',
    '{"seq": 11, "t_ms": 60, "kind": "block_created", "block": "other", "tier": "gpu", "slot": 4}',
    '{"seq": 12, "t_ms": 70, "kind": "tier_cleared", "tier": "host", "reason": "manual"}',
]


@contextmanager
def stored(lines: Sequence[str]) -> Iterator[Store]:
    """A store with some events, in as many batches as they have runs of seqs."""
    events = [line.event for line in read_lines(lines)]
    with memory_store() as store:
        for run in ([event for event in events if (event.seq or 0) < 9], [event for event in events if (event.seq or 0) >= 9]):
            store.submit(events_batch(run)).result()
        yield store


def life(store: Store, at_ms: int | None = None) -> BlockLife:
    """What is known of the block."""
    with store.read() as cursor:
        found = block_life(cursor, streams(cursor), BLOCK, None if at_ms is None else at_ms * MS)
    assert found is not None
    return found


def test_whole_life() -> None:
    """Every stay of every copy, with what ended it; a place that another block takes has lost its copy unseen."""
    with stored(STORY) as store:
        copies = life(store).copies

    assert [
        ("gpu", 3, 0, 13 * MS, "evicted (capacity)"),
        ("host", 8, 9 * MS, 70 * MS, "cleared (manual)"),
        ("gpu", 4, 50 * MS, 60 * MS, "superseded"),
    ] == [(copy.tier, copy.slot, copy.from_ns, copy.to_ns, copy.ended_by) for copy in copies]


def test_where_it_was() -> None:
    """At a moment there are the copies that had begun and not ended; a hole hides no copy that ends behind it."""
    with stored(STORY) as store:
        places = {at: [(copy.tier, copy.state) for copy in life(store, at).copies] for at in (2, 10, 30, 55, 80)}

    assert {
        2: [("gpu", CopyState.RESIDENT)],
        10: [("gpu", CopyState.RESIDENT), ("host", CopyState.RESIDENT)],
        30: [("host", CopyState.RESIDENT)],
        55: [("host", CopyState.RESIDENT), ("gpu", CopyState.RESIDENT)],
        80: [],
    } == places


def test_a_hole_makes_unknown() -> None:
    """A copy of which nothing is heard after a hole may have gone in it."""
    with stored(STORY[:7]) as store:
        before, behind = life(store, 15), life(store, 45)

    assert [("host", CopyState.RESIDENT)] == [(copy.tier, copy.state) for copy in before.copies]
    assert [("host", CopyState.UNKNOWN)] == [(copy.tier, copy.state) for copy in behind.copies]
    assert [(20 * MS, 40 * MS)] == [(window.start_ns, window.end_ns) for window in behind.unknown]


def test_why() -> None:
    """The chain follows an eviction to what caused it."""
    with stored(STORY) as store:
        chain = [link.text for link in life(store).chain]

    assert (
        "backpressure on nvme (disk_queue)"
        == chain[1 + next(place for place, text in enumerate(chain) if text.startswith("evicted"))]
    )


def test_a_block_that_nobody_knows() -> None:
    """Of a block without events there is no life."""
    with stored(STORY) as store, store.read() as cursor:
        assert block_life(cursor, streams(cursor), 5, None) is None
