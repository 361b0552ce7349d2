"""Looks at every rule with the figures of now: which alerts fired, and which ended. The thread `kvtrail-alerts` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kvtrail_collector.alerts.measures import MEASURES, Gathered
from kvtrail_collector.alerts.observe import RECOMPUTE_BASE
from kvtrail_collector.alerts.rules import Rule
from kvtrail_collector.alerts.state import AlertState, Phase, Turn, step
from kvtrail_collector.alerts.windows import Subject, Windows

_TAIL = 0.95
_MIDDLE = 0.5


class AlertKey(NamedTuple):
    """One rule at one engine's tier."""

    rule: str
    engine: str
    tier: str


class Change(NamedTuple):
    """An alert that fired, or ended."""

    rule: Rule
    key: AlertKey
    turn: Turn
    value: float | None


class Asked(NamedTuple):
    """Figures that are not gathered from rows: by measure (a verdict: `verdict:CODE`) and engine."""

    by_subject: Mapping[tuple[str, str], float]

    def engines(self, measure: str) -> list[str]:
        """The engines of whom a figure is there."""
        return [engine for known, engine in self.by_subject if known == measure]


class Evaluator:
    """Holds the state of each alert. `look` costs microseconds a rule and subject."""

    def __init__(self, rules: Sequence[Rule], windows: Windows) -> None:
        self.rules = tuple(rules)
        self._windows = windows
        self.states: dict[AlertKey, AlertState] = {}

    def look(self, now_ns: int, now_s: int, asked: Asked) -> list[Change]:
        """Every rule, once. `now_ns` is monotonic, for how long; `now_s` is wall time, for which events."""
        changes: list[Change] = []
        for rule in self.rules:
            for key, value in self._figures(rule, now_s, asked) if rule.is_on else ():
                hidden = self._is_hidden(rule, key.engine, now_s)
                state, turn = step(self.states.get(key, AlertState()), rule, value, now_ns, is_hidden=hidden)
                self.states[key] = state
                if value is None and state.phase is Phase.QUIET and MEASURES[rule.measure].gathered is Gathered.ASKED:
                    del self.states[key]
                if turn is not Turn.NONE:
                    changes.append(Change(rule, key, turn, value))
        return changes

    def forget(self, now_s: int) -> None:
        """Let go of those of whom nothing is heard any more, once their alerts have ended. A millisecond for thousands."""
        measure_of = {rule.name: rule.measure for rule in self.rules}
        states: dict[Subject, list[AlertKey]] = {}
        for key in self.states:
            states.setdefault(Subject(key.engine, measure_of[key.rule], key.tier), []).append(key)
        for subject in self._windows.idle(now_s):
            own = states.get(subject, [])
            if all(self.states[key].phase is Phase.QUIET for key in own):
                self._windows.drop(subject)
                for key in own:
                    del self.states[key]

    def _figures(self, rule: Rule, now_s: int, asked: Asked) -> Iterator[tuple[AlertKey, float | None]]:
        """The figure of a rule for each of whom there is one, or was."""
        if MEASURES[rule.measure].gathered is Gathered.ASKED:
            name = f"verdict:{rule.code}" if rule.code else rule.measure
            before = [key.engine for key in self.states if key.rule == rule.name]
            for engine in dict.fromkeys((*before, *asked.engines(name))):
                yield AlertKey(rule.name, engine, ""), asked.by_subject.get((name, engine))
            return
        for subject in self._windows.subjects(rule.measure):
            if rule.tier in {"", subject.tier}:
                yield AlertKey(rule.name, subject.engine, subject.tier), self._gathered(rule, subject, now_s)

    def _gathered(self, rule: Rule, subject: Subject, now_s: int) -> float | None:
        """The figure of a measure that is gathered from rows."""
        match MEASURES[rule.measure].gathered:
            case Gathered.COUNT:
                return self._windows.count(subject, now_s, rule.window_s)
            case Gathered.SHARE:
                return self._windows.share(subject, now_s, rule.window_s, rule.least)
            case Gathered.SPREAD:
                return self._ratio(rule, subject, now_s)
            case _:
                return self._windows.latest(subject, now_s, is_high_bad=rule.fires_above)

    def _is_hidden(self, rule: Rule, engine: str, now_s: int) -> bool:
        """Whether an action keeps back as much as the figure of a rule is made of."""
        held_back = MEASURES[rule.measure].held_back
        subject = Subject(engine, held_back, "")
        return bool(held_back) and self._windows.count(subject, now_s, rule.window_s) >= rule.least

    def _ratio(self, rule: Rule, subject: Subject, now_s: int) -> float | None:
        """The tail of a spread over the middle of its baseline."""
        base = subject._replace(measure=RECOMPUTE_BASE)
        tail_ns = self._windows.quantile_ns(subject, now_s, rule.window_s, _TAIL, rule.least)
        middle_ns = self._windows.quantile_ns(base, now_s, rule.window_s, _MIDDLE, 1)
        return tail_ns / middle_ns if tail_ns is not None and middle_ns else None
