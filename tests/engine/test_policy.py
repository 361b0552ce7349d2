"""Who leaves first: a pure policy beside the obvious model of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_engine.policy import PriorityLru
from kvtrail_engine.tiers.block import DEFAULT_PRIORITY, Block, Copy, CopyState, Terms
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

SECOND = 1_000_000_000


def copy(number: int, *, owner: str = "a", used_ns: int = 0, **terms: Any) -> Copy:
    """An idle copy of the block of this number."""
    block = Block(BlockId(number), NamespaceId(1), None, 0, 32, owner)
    return Copy(block, Tier.HOST, Slot(number), CopyState.READY, used_ns, terms=Terms(**terms))


def numbers(copies: list[Copy]) -> list[int]:
    """The blocks of copies, in order."""
    return [each.block.id for each in copies]


offers = st.lists(st.tuples(st.integers(0, 100), st.sampled_from("abc"), st.booleans()), max_size=60)


@given(offers=offers, limit=st.integers(0, 70))
def test_priority_decides_and_age_decides_among_equals(offers: list[tuple[int, str, bool]], limit: int) -> None:
    """Victims are sorted by priority, then by when they were offered; withdrawn ones never come up, whoever asks."""
    policy = PriorityLru()
    kept: list[tuple[int, int, Copy]] = []
    for number, (priority, owner, stays) in enumerate(offers):
        made = copy(number, owner=owner, priority=priority)
        policy.offer(made)
        if stays:
            kept.append((priority, number, made))
        else:
            policy.withdraw(made)
    order = [made for _, _, made in sorted(kept, key=lambda each: each[:2])]

    assert order[:limit] == policy.victims(limit)
    assert len(order) == policy.idle()
    for owner in "abc":
        mine = [made for made in order if made.block.owner == owner]
        assert mine == policy.victims(100, owner)
        assert len(mine) == policy.idle(owner)


@given(renewals=st.lists(st.integers(0, 9), min_size=100, max_size=200))
def test_asking_changes_nothing_and_renewing_leaves_one_entry(renewals: list[int]) -> None:
    """However often copies are offered again, each comes up once, the one renewed last at the end."""
    policy, copies = PriorityLru(), [copy(number) for number in range(10)]
    for number in renewals:
        policy.offer(copies[number])
    order = list(dict.fromkeys(reversed(renewals)))[::-1]

    assert order == numbers(policy.victims(20))
    assert order == numbers(policy.victims(20))


@given(ages=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10_000)), min_size=2, max_size=20))
def test_with_ageing_a_point_is_worth_so_much_idle_time(ages: list[tuple[int, int]]) -> None:
    """A copy that has been idle for longer than its points are worth leaves before a fresh one of no priority."""
    policy = PriorityLru(point_ns=SECOND)
    made = [copy(at, used_ns=used_s * SECOND, priority=priority) for at, (priority, used_s) in enumerate(ages)]
    for each in made:
        policy.offer(each)
    worth = [each.used_ns + each.terms.priority * SECOND for each in policy.victims(len(made))]

    assert sorted(worth) == worth


@pytest.mark.parametrize(("idle_s", "first"), [(99, 2), (101, 1)])
def test_old_high_priority_falls(idle_s: int, first: int) -> None:
    """At a second a point, priority 100 outlasts priority 0 by 100 seconds and no more."""
    policy = PriorityLru(point_ns=SECOND)
    for each in (copy(1, used_ns=0, priority=100), copy(2, used_ns=idle_s * SECOND, priority=0)):
        policy.offer(each)

    assert [first] == numbers(policy.victims(1))


def test_a_priority_holds_as_long_as_it_was_given_for() -> None:
    """After its duration a block is kept as dearly as any other, and no longer."""
    policy = PriorityLru()
    high, usual = copy(1, priority=90, priority_until_ns=10), copy(2)
    for each in (high, usual):
        policy.offer(each)

    assert [2, 1] == numbers(policy.victims(2))
    assert [] == policy.advance(9)
    assert 90 == high.terms.priority
    assert [] == policy.advance(10)
    assert DEFAULT_PRIORITY == high.terms.priority
    assert [2, 1] == numbers(policy.victims(2))
    policy.offer(usual)
    assert [1, 2] == numbers(policy.victims(2))


def test_an_expired_copy_is_named_until_it_is_gone() -> None:
    """Whoever cannot remove it at once is told again."""
    policy = PriorityLru()
    old = copy(1, expires_ns=10)
    policy.offer(old)

    assert [] == policy.advance(9)
    assert [old] == policy.advance(10)
    assert [old] == policy.advance(11)
    policy.withdraw(old)
    assert [] == policy.advance(12)
