"""Everything that is wrong in a stretch of time, as one ordered list: population verdicts, mechanisms, broken invariants.

The order is that of LEDGER §6: what endangers data; hangs; population verdicts by their share; mechanisms by what they
cost; the stream; figures that lie. What two codes would say of the same events is said by the more specific one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import NO_CODE, Attribution, Outcome, Verdict, Window
from kvtrail_collector.coverage import Missing, coverage_of, missing_kinds
from kvtrail_collector.detectors.judge import Finding, Judgement, Sight, Thresholds, judge
from kvtrail_collector.detectors.rule import POPULATION_RANK, Need, Rule
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene import Scene
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.verdicts_table import GENERAL_OF

_ARRIVALS: Final = Kind.REQUEST_ARRIVED.value
_OF_A_TIER: Final = frozenset({"TIER_QUEUE", "TIER_SLOW"})


def diagnose(
    scene: Scene,
    attribution: Attribution | None = None,
    *,
    unreadable: int = 0,
    thresholds: Thresholds | None = None,
    rules: Sequence[Rule] = RULES,
) -> Verdicts:
    """Judge a scene. Runs on the thread that owns it; about 2 s for ten million events, beside attribution.

    Args:
        scene: the events.
        attribution: the answer to the spike in it, where there are requests enough for one.
        unreadable: lines or rows that were there and could not be read: they count as lost.
        thresholds: values by code and name that replace defaults.
        rules: what to ask.
    """
    sight = sight_of(scene, unreadable)
    judgement = judge(rules, scene, sight, thresholds)
    population = attribution.verdicts if attribution else ()
    device = attribution.device if attribution else None
    spike = attribution.window if attribution else None
    return Verdicts(
        coverage=sight.window.coverage,
        window=spike or (sight.window if scene.kinds else None),
        verdicts=tuple(_report(population, judgement.findings)),
        missing=(*missing_kinds(frozenset(scene.kinds)), *_lacking(judgement)),
        other_spikes=attribution.other_spikes if attribution else (),
        device=device or scene.loss.device,
        unexplained=_unexplained(attribution) if attribution else None,
        notes=attribution.notes if attribution else (),
    )


def _unexplained(attribution: Attribution) -> str | None:
    """Why a spike that was found has no verdict; None where it has one, or where nothing was slower."""
    if attribution.window is None or attribution.verdicts or attribution.outcome is not Outcome.UNDECIDED:
        return None
    return attribution.why_not or NO_CODE


def sight_of(scene: Scene, unreadable: int) -> Sight:
    """How much of what was produced is in a scene."""
    streams = scene.loss.streams
    lost = sum(stream.lost - stream.lost_before_stored for stream in streams) + unreadable
    gone = sum(stream.expired + stream.lost_before_stored for stream in streams)
    seen = sum(scene.kinds.values())
    coverage = min(coverage_of(scene.loss), seen / (seen + unreadable) if seen else 1.0)
    return Sight(Window(scene.start_ns, scene.end_ns, scene.kinds.get(_ARRIVALS, 0), coverage), lost, gone)


def _report(population: Iterable[Verdict], findings: Iterable[Finding]) -> list[Verdict]:
    """All verdicts in order, each set of events told once."""
    ranked: list[tuple[tuple[int, float, str], Verdict]] = [
        ((POPULATION_RANK, -verdict.share, verdict.code), verdict) for verdict in population
    ]
    ranked += [((one.rule.family.rank, -one.touched_ns, one.verdict.code), one.verdict) for one in findings]
    ordered = [verdict for _, verdict in sorted(ranked, key=lambda pair: pair[0])]
    return _once(ordered)


def _once(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Without those that a more specific or an earlier verdict says already; what was left out stands under `also`."""
    kept: list[Verdict] = []
    for place, verdict in enumerate(verdicts):
        others = [*verdicts[:place], *verdicts[place + 1 :]]
        if any(_covers(other, verdict) for other in others) or any(_is_same(other, verdict) for other in kept):
            continue
        covered = [other.code for other in others if _covers(verdict, other)]
        also = dict.fromkeys([*verdict.also, *covered])
        kept.append(msgspec.structs.replace(verdict, also=tuple(code for code in also if code != verdict.code)))
    return kept


def _covers(one: Verdict, other: Verdict) -> bool:
    """Whether one verdict is the more specific word for what another says.

    What windows and bootstrap say is never taken back by counts alone.
    """
    if other.basis == "population" and one.basis != "population":
        return False
    elsewhere = other.code in _OF_A_TIER and None not in {one.tier, other.tier} and one.tier != other.tier
    return not elsewhere and other.code in GENERAL_OF.get(one.code, frozenset())


def _is_same(one: Verdict, other: Verdict) -> bool:
    """Whether two verdicts say the same, on another basis."""
    return one.code == other.code and one.basis != other.basis and one.tier in {None, other.tier}


def _lacking(judgement: Judgement) -> list[Missing]:
    """What was missing for a sure answer, with the codes that could not be judged without it."""
    codes: dict[Need, list[str]] = {}
    for rule, need in judgement.lacking:
        codes.setdefault(need, []).append(rule.code)
    found = [Missing(_name(need), f"cannot be judged: {', '.join(sorted(names))}") for need, names in codes.items()]
    found += [Missing(rule.code, f"could not be computed: {problem}") for rule, problem in judgement.failed]
    doubted = ", ".join(sorted(rule.code for rule in judgement.doubtful))
    return [*found, Missing("lost events", f"may be all that is behind: {doubted}")] if doubted else found


def _name(need: Need) -> str:
    """What was needed, in the words of the contract."""
    kinds = " or ".join(kind.name.lower() for kind in need.kinds)
    return f"{kinds} with {' or '.join(need.fields)}" if need.fields else kinds
