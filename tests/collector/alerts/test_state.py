"""One alert's life: it fires once, it ends once, and it does not flutter with its figure."""

from __future__ import annotations

from kvtrail_collector.alerts.batch import NS_S
from kvtrail_collector.alerts.state import AlertState, Phase, Turn, step

from tests.collector.alerts.stories import rule


def turns(values: list[float | None], **changes: float) -> list[Turn]:
    """What a rule makes of a figure a second, without the looks that changed nothing."""
    state, found = AlertState(), []
    for second, value in enumerate(values):
        state, turn = step(state, rule(**changes), value, second * NS_S)
        found.append(turn)
    return [turn for turn in found if turn is not Turn.NONE]


def test_a_flapping_figure_gives_one_fire_and_one_clear() -> None:
    """A figure that swings across both levels each second is one alert, however long it swings."""
    swinging = [0.9, 0.1] * 60

    assert [Turn.FIRED, Turn.CLEARED] == turns([*swinging, *[0.1] * 20], hold_s=10.0)


def test_between_the_levels_nothing_changes() -> None:
    """What lies between clear and raise neither fires an alert nor ends it."""
    assert [] == turns([0.4] * 10)
    assert [Turn.FIRED] == turns([0.6, *[0.4] * 10])


def test_a_short_excess_does_not_fire() -> None:
    """An alert waits for its `for`, all through; a dip begins it anew."""
    assert [] == turns([0.9, 0.9, 0.1, 0.9, 0.9, 0.1], for_s=3.0)
    assert [Turn.FIRED] == turns([0.9] * 4, for_s=3.0)


def test_without_a_figure_an_alert_ends() -> None:
    """Once an action has stopped what was counted, there is no figure; that is clear, after the hold time."""
    assert [Turn.FIRED, Turn.CLEARED] == turns([0.9, *[None] * 6], hold_s=5.0)


def test_a_rule_may_fire_below() -> None:
    """Where raise lies under clear, small figures are the bad ones."""
    assert [Turn.FIRED, Turn.CLEARED] == turns([5.0, 0.5, 1.5, 3.0], raise_at=1.0, clear_at=2.0)


def test_a_clearing_alert_that_is_bad_again_holds_anew() -> None:
    """The hold time is of one piece."""
    state, _ = step(AlertState(), rule(hold_s=3.0), 0.9, 0)
    for second, value in enumerate([0.1, 0.1, 0.9, 0.1, 0.1], start=1):
        state, turn = step(state, rule(hold_s=3.0), value, second * NS_S)

    assert (Phase.CLEARING, Turn.NONE) == (state.phase, turn)


def test_an_alert_does_not_end_because_its_action_hides_the_figure() -> None:
    """While as much is kept back as would be looked at, a figure that is gone says nothing; once that is over, it is clear."""
    hidden = [None] * 30

    assert [(0, Turn.FIRED), (34, Turn.CLEARED)] == while_hidden([0.9, *hidden, *[None] * 5], hidden=30, hold_s=3.0)


def test_what_stays_hidden_is_let_through_for_a_trial() -> None:
    """Nobody knows what is kept back unless it is let through: after `trial_s` the alert ends, and fires anew if it must."""
    found = while_hidden([0.9, *[None] * 15, 0.9], hidden=15, hold_s=3.0, trial_s=10.0)

    assert [(0, Turn.FIRED), (13, Turn.CLEARED), (16, Turn.FIRED)] == found


def while_hidden(values: list[float | None], hidden: int, **changes: float) -> list[tuple[int, Turn]]:
    """When a rule fired and cleared, with an action that hides the figure of seconds 1 to `hidden`."""
    state, found = AlertState(), []
    for second, value in enumerate(values):
        state, turn = step(state, rule(**changes), value, second * NS_S, is_hidden=1 <= second <= hidden)
        found.append((second, turn))
    return [(second, turn) for second, turn in found if turn is not Turn.NONE]
