"""Orders: never two that contradict, never one more than needed, and none that outlives its reason."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.alerts.actions import ActionBook, Want, desired
from kvtrail_collector.alerts.batch import NS_S
from kvtrail_schema.degrade import ActionKind, DegradeOrder, Desired, parse_action

STOP, GPU_ONLY = parse_action("stop_prefetch"), parse_action("gpu_only")
TEXTS = [
    *("stop_prefetch", "recompute", "gpu_only", "disable_tier(nvme)", "disable_tier(host)"),
    *("limit_long_context(4096)", "limit_long_context(512)"),
]
START_NS = 1_700_000_000 * NS_S


def want(rule: str, text: str, expires_s: float = 60.0) -> Want:
    """A rule's wish."""
    return Want(rule, parse_action(text), expires_s)


def told(orders: Sequence[DegradeOrder]) -> list[str]:
    """Orders in words."""
    return [f"{order.state.value} {order.action}" for order in orders]


def test_an_action_stays_while_anybody_wants_it() -> None:
    """Two rules that want the same are one order, and it is released when the last of them has ended."""
    book = ActionBook()

    assert ["applied stop_prefetch"] == told(book.want("chat", want("a", "stop_prefetch"), START_NS))
    assert [] == told(book.want("chat", want("b", "stop_prefetch"), START_NS))
    assert [] == told(book.unwant("chat", "a", START_NS))
    assert ["released stop_prefetch"] == told(book.unwant("chat", "b", START_NS))


def test_the_stricter_of_two_takes_the_place_of_the_other() -> None:
    """It is applied before the other is released, and when it ends the other is back."""
    book = ActionBook()
    book.want("chat", want("a", "recompute"), START_NS)

    assert ["applied gpu_only", "released recompute"] == told(book.want("chat", want("b", "gpu_only"), START_NS))
    assert ["applied recompute", "released gpu_only"] == told(book.unwant("chat", "b", START_NS))


@given(st.lists(st.sampled_from(TEXTS), max_size=8))
def test_never_two_that_contradict(texts: list[str]) -> None:
    """Whoever wants what: one limit at most, and nothing beside gpu_only that it covers; what is wanted is covered."""
    kinds = [action.kind for action in desired(want(str(n), text) for n, text in enumerate(texts)).values()]

    assert kinds.count(ActionKind.LIMIT_LONG_CONTEXT) <= 1
    assert ActionKind.GPU_ONLY not in kinds or not {ActionKind.RECOMPUTE, ActionKind.DISABLE_TIER} & set(kinds)
    assert bool(texts) == bool(kinds)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from(TEXTS)), max_size=30))
def test_orders_lead_to_what_is_in_force(turns: list[tuple[bool, str, str]]) -> None:
    """Who carries out the orders one by one, by version, has what the book says, and versions only grow."""
    book, has, last = ActionBook(), set[str](), 0
    for number, (wants, rule, text) in enumerate(turns):
        now_ns = START_NS + number
        for order in book.want("chat", want(rule, text), now_ns) if wants else book.unwant("chat", rule, now_ns):
            assert order.version > last
            last = order.version
            (has.add if order.state is Desired.APPLIED else has.discard)(str(order.action))

    assert {str(one.action) for one in book.in_force()} == has


def test_what_goes_on_is_ordered_anew_before_it_expires() -> None:
    """An engine that is told nothing more ends an action by itself; so it is told, at half of the time."""
    book = ActionBook()
    (first,) = book.want("chat", want("a", "stop_prefetch", 60.0), START_NS)

    assert [] == book.renew(START_NS + 29 * NS_S)
    (again,) = book.renew(START_NS + 31 * NS_S)
    assert (first.action, Desired.APPLIED) == (again.action, again.state)
    assert again.version > first.version
    assert START_NS + 91 * NS_S == again.expires_wall_ns


def test_what_a_person_released_stays_released_until_the_alert_ended() -> None:
    """A rule that still fires does not overrule a person; the next alert of it may act again."""
    book = ActionBook()
    book.want("chat", want("a", "stop_prefetch"), START_NS)

    assert ["released stop_prefetch"] == told(book.release("chat", "stop_prefetch", START_NS))
    assert [] == book.want("chat", want("a", "stop_prefetch"), START_NS)
    assert [] == book.unwant("chat", "a", START_NS)
    assert ["applied stop_prefetch"] == told(book.want("chat", want("a", "stop_prefetch"), START_NS))


def test_what_a_person_released_a_person_may_ask_for_again() -> None:
    """Only rules are muted by a release: who asks by hand is heard, as often as it is."""
    book = ActionBook()
    for turn in range(3):
        now_ns = START_NS + turn * NS_S
        by_hand = Want("by hand: stop_prefetch", STOP, 300.0, now_ns + 300 * NS_S)

        assert ["applied stop_prefetch"] == told(book.want("chat", by_hand, now_ns))
        assert ["released stop_prefetch"] == told(book.release("chat", "stop_prefetch", now_ns))


def test_a_release_is_tried_for_as_long_as_its_action_could_last() -> None:
    """An agent that is away for a while hears of it, and does not sit out an hour."""
    book = ActionBook()
    book.want("chat", want("long", "stop_prefetch", 3_600.0), START_NS)
    book.want("chat", want("short", "gpu_only", 5.0), START_NS)
    (long,) = book.unwant("chat", "long", START_NS + NS_S)
    (short,) = book.unwant("chat", "short", START_NS + NS_S)

    assert START_NS + 3_600 * NS_S == long.expires_wall_ns
    assert START_NS + 61 * NS_S == short.expires_wall_ns


def test_a_step_back_of_the_wall_clock_is_no_pause_of_renewals() -> None:
    """An engine counts by its monotonic clock, so what goes on is ordered anew at once and then as before."""
    book, back_ns = ActionBook(), START_NS - 3_600 * NS_S
    book.want("chat", want("a", "stop_prefetch", 60.0), START_NS)

    assert ["applied stop_prefetch"] == told(book.renew(back_ns))
    assert [] == book.renew(back_ns + 29 * NS_S)
    assert ["applied stop_prefetch"] == told(book.renew(back_ns + 31 * NS_S))


def test_what_a_person_asked_for_ends_with_its_time() -> None:
    """A wish for five minutes is released after five minutes, and no order reaches beyond them."""
    book, until_ns = ActionBook(), START_NS + 300 * NS_S
    (order,) = book.want("chat", Want("by hand", STOP, 300.0, until_ns), START_NS)

    assert until_ns == order.expires_wall_ns
    assert ["released stop_prefetch"] == told(book.lapse(until_ns))


def test_an_engine_of_whom_nothing_is_wanted_is_forgotten_and_its_versions_are_not() -> None:
    """One that comes again after the wall clock stepped back is ordered with a larger version all the same."""
    book = ActionBook()
    book.want("chat", want("a", "gpu_only"), START_NS)
    (released,) = book.unwant("chat", "a", START_NS)
    book.lapse(START_NS)

    assert {} == book._engines
    (again,) = book.want("chat", want("a", "gpu_only"), START_NS - 3_600 * NS_S)
    assert again.version > released.version


def test_a_later_collector_orders_with_larger_versions() -> None:
    """Versions come from wall time, so one that starts anew is not taken for a straggler."""
    first = [ActionBook().want("chat", want("a", text), START_NS)[0].version for text in TEXTS]
    later = ActionBook().want("chat", want("a", "gpu_only"), START_NS + NS_S)[0].version

    assert all(before < after for before, after in product(first, [later]))


def test_actions_are_read_as_they_are_written() -> None:
    """The text of an action is its name everywhere: in rules, orders, events and answers."""
    assert TEXTS == [str(parse_action(text)) for text in TEXTS]
    assert GPU_ONLY == parse_action("gpu_only")
