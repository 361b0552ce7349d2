"""The life of a copy: every step is in the table or reported, and folding is the same in one go or in two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.jsonl import read_lines
from kvtrail_schema.lifecycle import LEGAL, Copy, CopyKey, CopyState, Fact, Folded, fold
from kvtrail_schema.reasons import ClearReason, EvictReason, InvalidateReason, SwapInFailReason

from tests.schema.stories import created, evicted, filled, filling, invalidated, load_failed, pinned, read, unpinned
from tests.strategies import numbered

FACTS: dict[Fact, Event] = {
    Fact.CREATE: created(1),
    Fact.FILL_BEGIN: filling(1),
    Fact.FILL_END: filled(1),
    Fact.FILL_FAIL: load_failed(1),
    Fact.READ: read(1),
    Fact.PIN: pinned(1, refs=1),
    Fact.UNPIN: unpinned(1, refs=0),
    Fact.LEAVE: evicted(1),
    Fact.INVALIDATE: invalidated(1),
}
BEFORE: dict[CopyState, list[Event]] = {
    CopyState.ABSENT: [],
    CopyState.FILLING: [filling(1)],
    CopyState.READABLE: [created(1)],
    CopyState.INVALIDATED: [created(1), invalidated(1)],
}
KEY = CopyKey(1, Tier.GPU, 1)  # type: ignore[arg-type]  # plain numbers read better here
FAILED = {(state, Fact.FILL_FAIL) for state in CopyState if state is not CopyState.FILLING}
"""A failed transfer names no place; it is known by its op, and ends only what that op is filling."""

PAIRS = [(state, fact) for state in CopyState for fact in Fact if (state, fact) not in FAILED]


@pytest.mark.parametrize("state", CopyState)
def test_stories_lead_to_their_state(state: CopyState) -> None:
    """The beginnings that the next tests use are what they say, and break no rule."""
    folded = fold(BEFORE[state])

    assert state is folded.copies.get(KEY, Copy()).state
    assert folded.violations == ()


@pytest.mark.parametrize(("state", "fact"), PAIRS)
def test_every_step_is_in_the_table_or_reported(state: CopyState, fact: Fact) -> None:
    """No step is silently taken: a legal one leads where the table says, any other is a violation that names it."""
    event = numbered([FACTS[fact]], [99])[0]
    folded = fold([event], fold(BEFORE[state]))
    expected = LEGAL.get((state, fact))

    if expected is None:
        assert [(KEY, state, fact, 99)] == list(folded.violations)
    else:
        assert folded.violations == ()
        assert expected is folded.copies[KEY].state


@pytest.mark.parametrize("state", [CopyState.ABSENT, CopyState.READABLE, CopyState.INVALIDATED])
def test_failure_of_another_transfer_changes_nothing(state: CopyState) -> None:
    """A load that failed elsewhere says nothing about this copy."""
    before = fold(BEFORE[state])

    assert before == fold([load_failed(1)], before)


@given(st.data())
def test_folding_in_two_parts_is_folding_at_once(data: st.DataObject) -> None:
    """A collector that stops and goes on knows the same as one that never stopped."""
    events = numbered(data.draw(st.lists(happenings(), max_size=20)))
    cut = data.draw(st.integers(0, len(events)))

    assert fold(events) == fold(events[cut:], fold(events[:cut]))


@given(st.data())
def test_folding_changes_nothing_that_it_was_given(data: st.DataObject) -> None:
    """The state before is still there after, for whoever holds it."""
    before = fold(numbered(data.draw(st.lists(happenings(), max_size=8))))
    kept = Folded(dict(before.copies), before.violations)
    fold(numbered(data.draw(st.lists(happenings(), max_size=8))), before)

    assert kept == before


@given(st.data())
def test_copies_do_not_touch_each_other(data: st.DataObject) -> None:
    """Leaving one place says nothing about the others: each copy's fate is that of its own events alone."""
    events = numbered(data.draw(st.lists(happenings(), max_size=20)))
    together = fold(events)

    for key, copy in together.copies.items():
        own = [event for event in events if _block_of(event) in {None, key.block}]
        assert copy == fold(own).copies[key]


@given(st.data())
def test_violations_stand_in_order_of_seq(data: st.DataObject) -> None:
    """The first broken rule is reported first, and by the seq of the event that broke it."""
    events = numbered(data.draw(st.lists(happenings(), max_size=20)))
    seqs = [violation.seq for violation in fold(events).violations]

    assert sorted(seqs) == seqs


def happenings() -> st.SearchStrategy[Event]:
    """Any fact about one of three blocks, and now and then a cleared tier."""
    blocks = st.integers(1, 3)
    refs = st.integers(0, 2)
    cleared = st.builds(e.TierCleared, tier=st.just(Tier.GPU), reason=st.just(ClearReason.RESET))
    simple = [st.builds(make, blocks) for make in (created, filling, filled, load_failed, read, evicted, invalidated)]
    counted = [st.builds(make, blocks, refs=refs) for make in (pinned, unpinned)]
    return st.one_of(*simple, *counted, cleared)


def _block_of(event: Event) -> object:
    """The block that an event is about."""
    return getattr(event, "block", None)


def test_story_of_one_block() -> None:
    """A block is computed, saved to host, evicted, loaded back, read, and forbidden: five lives, no violation."""
    story = [
        '{"t_ms": 1, "kind": "block_created", "block": "b", "tier": "gpu", "slot": 0, "ns": "tenant"}',
        '{"t_ms": 2, "kind": "swap_out_queued", "block": "b", "op": 1, "src": "gpu", "dst": "host", "slot": 5}',
        '{"t_ms": 3, "kind": "swap_out_started", "block": "b", "op": 1, "src": "gpu", "dst": "host", "slot": 5}',
        '{"t_ms": 4, "kind": "swap_out_written", "block": "b", "op": 1, "src": "gpu", "dst": "host", "slot": 5}',
        '{"t_ms": 5, "kind": "evicted", "block": "b", "tier": "gpu", "slot": 0, "reason": "capacity"}',
        '{"t_ms": 6, "kind": "swap_in_queued", "block": "b", "op": 2, "src": "host", "dst": "gpu", "slot": 3}',
        '{"t_ms": 7, "kind": "swap_in_loaded", "block": "b", "op": 2, "src": "host", "dst": "gpu", "slot": 3}',
        '{"t_ms": 8, "kind": "block_pinned", "block": "b", "tier": "gpu", "slot": 3, "refs": 1, "req": 4}',
        '{"t_ms": 9, "kind": "attention_read", "block": "b", "tier": "gpu", "slot": 3, "req": 4}',
        '{"t_ms": 10, "kind": "invalidated", "block": "b", "tier": "gpu", "slot": 3, "reason": "manual", "cause": 9}',
        '{"t_ms": 11, "kind": "block_unpinned", "block": "b", "tier": "gpu", "slot": 3, "refs": 0, "req": 4}',
    ]
    folded = fold(line.event for line in read_lines(story))
    states = {(key.tier, key.slot): copy.state for key, copy in folded.copies.items()}
    last = next(copy for key, copy in folded.copies.items() if key.slot == 3)

    assert states == {
        (Tier.GPU, 0): CopyState.ABSENT,
        (Tier.HOST, 5): CopyState.READABLE,
        (Tier.GPU, 3): CopyState.INVALIDATED,
    }
    assert folded.violations == ()
    assert last.refs == 0
    assert last.last_reader == 4
    assert last.since_ns == 10_000_000


def test_reading_before_the_load_is_complete_is_reported() -> None:
    """The very fault that corrupts answers: a copy that is being filled is read."""
    (violation,) = fold(numbered([filling(1), read(1)])).violations

    assert violation == (KEY, CopyState.FILLING, Fact.READ, 2)


def test_every_read_of_an_invalidated_copy_is_reported() -> None:
    """Reading forbidden data once does not make it allowed."""
    violations = fold(numbered([created(1), invalidated(1), read(1), read(1)])).violations

    assert [violation.seq for violation in violations] == [3, 4]


def test_failed_load_leaves_the_place_free() -> None:
    """After a load has failed, the engine may compute the block into the same place."""
    folded = fold(numbered([filling(1), load_failed(1), created(1), read(1)]))

    assert folded.violations == ()
    assert folded.copies[KEY].state is CopyState.READABLE


def test_failed_op_ends_all_that_it_was_filling() -> None:
    """A failure that names no block is that of the whole op."""
    failed = e.SwapInFailed(op=7, src=Tier.HOST, dst=Tier.GPU, reason=SwapInFailReason.IO)  # type: ignore[arg-type]  # plain
    folded = fold(numbered([filling(1, op=7), filling(2, op=7), filling(3, op=8), failed]))
    states = {key.block: copy.state for key, copy in folded.copies.items()}

    assert states == {1: CopyState.ABSENT, 2: CopyState.ABSENT, 3: CopyState.FILLING}


def test_cleared_tier_ends_its_copies_only() -> None:
    """Clearing gpu for one namespace leaves other tiers, other namespaces, and evidence of invalidations."""
    events = [
        created(1, ns=5),
        created(2, ns=6),
        created(3, ns=5, tier=Tier.HOST),
        created(4, ns=5),
        invalidated(4),
        e.TierCleared(tier=Tier.GPU, reason=ClearReason.MANUAL, ns=5),  # type: ignore[arg-type]  # plain numbers
    ]
    states = {key.block: copy.state for key, copy in fold(events).copies.items()}

    assert states == {
        1: CopyState.ABSENT,
        2: CopyState.READABLE,
        3: CopyState.READABLE,
        4: CopyState.INVALIDATED,
    }


def test_next_life_begins_without_the_last_one() -> None:
    """References and readers belong to one life of a copy."""
    folded = fold([created(1), pinned(1, refs=2), read(1), evicted(1), created(1)])

    assert folded.copies[KEY].refs == 0
    assert folded.copies[KEY].last_reader is None


def test_table_speaks_of_known_steps_only() -> None:
    """Every state but "absent" can be left again, and each fact is legal somewhere."""
    assert set(CopyState) == {state for state, _ in LEGAL}
    assert set(Fact) == {fact for _, fact in LEGAL}


def test_reasons_of_the_helpers_are_real() -> None:
    """The stories use reasons that engines give."""
    assert evicted(1).reason is EvictReason.CAPACITY
    assert invalidated(1).reason is InvalidateReason.DOCUMENT_DELETED
