"""From rules to verdicts: asks each one whose input is there, and says which input was missing for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import duckdb

from kvtrail_collector.attribution_shapes import Verdict, Window
from kvtrail_collector.detectors.rule import Cell, Evidence, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.ledger_parts import TIER_NAMES

_OWN_COLUMNS: Final = frozenset({"tier", "ns", "touched_ns", "share", "sure", "cases", "refs", "also"})
_TIERS: Final = {tier.value: name for tier, name in TIER_NAMES.items()}

Thresholds = Mapping[str, Mapping[str, float]]
"""Values of thresholds by code and name; absent ones keep their defaults."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of a rule, with what ranks it."""

    rule: Rule
    verdict: Verdict
    touched_ns: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What rules found, which could not be judged for want of input, which a gap might explain
    away, and which the database could not compute.
    """

    findings: tuple[Finding, ...]
    lacking: tuple[tuple[Rule, Need], ...]
    doubtful: tuple[Rule, ...]
    failed: tuple[tuple[Rule, str], ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """How well the window was seen: `lost` events are known to be missing, and `gone` ones lie before all that is stored."""

    window: Window
    lost: int
    gone: int = 0


def judge(rules: Iterable[Rule], scene: Scene, sight: Sight, thresholds: Thresholds | None = None) -> Judgement:
    """Ask rules about a scene. Costs one query a rule whose triggers are there; see `kvtrail bench query` for "
    "what each takes.
    """
    findings: list[Finding] = []
    lacking: list[tuple[Rule, Need]] = []
    doubtful: list[Rule] = []
    failed: list[tuple[Rule, str]] = []
    for rule in rules:
        lacking += [(rule, need) for need in rule.needs if not scene.has(need)]
        if not is_called_for(rule, scene):
            continue
        try:
            rows = answer_of(rule, scene, thresholds or {})
        except duckdb.Error as error:  # figures that overflow, say: one code less, and said so
            failed.append((rule, str(error).partition("\n")[0]))
            continue
        for row in rows:
            if _may_be_a_gap(rule, row, sight):
                doubtful.append(rule)
            else:
                findings.append(_finding(rule, row, scene, sight))
    return Judgement(tuple(findings), tuple(lacking), tuple(dict.fromkeys(doubtful)), tuple(failed))


def answer_of(rule: Rule, scene: Scene, thresholds: Thresholds) -> list[Row]:
    """The rows that a rule finds."""
    settings = rule.settings(thresholds.get(rule.code, {}))
    return rule.find(scene, settings) if rule.find else scene.ask(rule.question, settings)


def is_called_for(rule: Rule, scene: Scene) -> bool:
    """Whether a rule has its input, and there is anything that it could fire on."""
    triggered = not rule.triggers or any(kind.value in scene.kinds for kind in rule.triggers)
    return triggered and all(scene.has(need) for need in rule.needs)


def _may_be_a_gap(rule: Rule, row: Row, sight: Sight) -> bool:
    """Whether as many events are lost as would have to be, for what seems absent to have happened."""
    if not rule.evidence.is_absence:
        return False
    unseen = sight.lost + (sight.gone if rule.evidence is Evidence.ABSENCE_EVER else 0)
    return unseen >= _number(row.get("cases"), 1)


def _finding(rule: Rule, row: Row, scene: Scene, sight: Sight) -> Finding:
    """A row as a verdict; what was not seen makes it less sure."""
    refs = row.get("refs")
    events = [scene.event(ref) for ref in (refs if isinstance(refs, list) else [])]
    also = row.get("also")
    verdict = Verdict(
        code=rule.code,
        tier=_TIERS.get(int(_number(row.get("tier"), -1))),
        tenant=scene.tenant(row.get("ns")),
        component=None,
        share=min(max(_number(row.get("share"), 1.0), 0.0), 1.0),
        confidence=min(max(_number(row.get("sure"), 1.0), 0.0), 1.0) * sight.window.coverage,
        basis=rule.basis.value,
        window=sight.window,
        evidence={name: _shown(value) for name, value in row.items() if name not in _OWN_COLUMNS and value is not None},
        events=tuple(event for event in events if event),
        action=rule.action,
        also=tuple(str(code) for code in also) if isinstance(also, list) else (),
    )
    return Finding(rule, verdict, int(_number(row.get("touched_ns"), 0)))


def _number(value: Cell, otherwise: float) -> float:
    """A number of a row; what is absent or none counts as something else."""
    try:
        return otherwise if value is None else float(value)  # type: ignore[arg-type]  # lists and texts raise, and are caught
    except (TypeError, ValueError):
        return otherwise


def _shown(value: Cell) -> float | int | str:
    """A cell as evidence: whole numbers as they are, text as text, what else DuckDB computes with as a float."""
    if isinstance(value, bool | int | str):
        return int(value) if isinstance(value, bool) else value
    return round(_number(value, 0.0), 6)
