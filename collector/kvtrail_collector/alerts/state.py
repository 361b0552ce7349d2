"""One alert's life: quiet, pending, firing, and quiet again only after it was clear for a while. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from kvtrail_collector.alerts.rules import Rule

_NS_S = 1_000_000_000


class Phase(Enum):
    """Where an alert is in its life."""

    QUIET = "quiet"
    PENDING = "pending"
    """Beyond `raise`, not long enough yet."""
    FIRING = "firing"
    CLEARING = "clearing"
    """Fires still, and is clear, not long enough yet."""


class Turn(Enum):
    """What a look at an alert changed."""

    NONE = "none"
    FIRED = "fired"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class AlertState:
    """One rule at one subject. `since_ns` is when it came into its phase, by the monotonic clock; `value` the last figure.

    `fired_ns` is when it fired last.
    """

    phase: Phase = Phase.QUIET
    since_ns: int = 0
    value: float | None = None
    fired_ns: int = 0

    @property
    def is_firing(self) -> bool:
        """Whether people, and engines, are to act."""
        return self.phase in {Phase.FIRING, Phase.CLEARING}


def step(
    state: AlertState, rule: Rule, value: float | None, now_ns: int, *, is_hidden: bool = False
) -> tuple[AlertState, Turn]:
    """The state after a look. Without a figure nothing is raised, and what fires is clear.

    `is_hidden`: an action keeps back what would be looked at, so that a good figure, or none, says nothing. What fires goes on
    then, until its trial is due: what is kept back may have become harmless, and only letting it through tells.
    """
    state = replace(state, value=value)
    if state.is_firing:
        is_kept = is_hidden and now_ns - state.fired_ns < rule.trial_s * _NS_S
        return _while_firing(state, rule, now_ns, is_clear=_is_clear(rule, value) and not is_kept)
    if not _is_raised(rule, value):
        return (state if state.phase is Phase.QUIET else replace(state, phase=Phase.QUIET, since_ns=now_ns)), Turn.NONE
    if state.phase is Phase.QUIET:
        state = replace(state, phase=Phase.PENDING, since_ns=now_ns)
    if now_ns - state.since_ns < rule.for_s * _NS_S:
        return state, Turn.NONE
    return replace(state, phase=Phase.FIRING, since_ns=now_ns, fired_ns=now_ns), Turn.FIRED


def _while_firing(state: AlertState, rule: Rule, now_ns: int, *, is_clear: bool) -> tuple[AlertState, Turn]:
    """It ends once it was clear all through the hold time; anything else in between begins that time anew."""
    if not is_clear:
        return (state if state.phase is Phase.FIRING else replace(state, phase=Phase.FIRING, since_ns=now_ns)), Turn.NONE
    if state.phase is Phase.FIRING:
        state = replace(state, phase=Phase.CLEARING, since_ns=now_ns)
    if now_ns - state.since_ns < rule.hold_s * _NS_S:
        return state, Turn.NONE
    return replace(state, phase=Phase.QUIET, since_ns=now_ns), Turn.CLEARED


def _is_raised(rule: Rule, value: float | None) -> bool:
    """Whether a figure is beyond the level that raises."""
    return value is not None and (value >= rule.raise_at if rule.fires_above else value <= rule.raise_at)


def _is_clear(rule: Rule, value: float | None) -> bool:
    """Whether a figure is back behind the level that clears."""
    return value is None or (value <= rule.clear_at if rule.fires_above else value >= rule.clear_at)
