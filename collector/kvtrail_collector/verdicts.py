"""From causes to verdicts: which findings there are, and which of them are sure enough to stand (LEDGER §6)."""

from dataclasses import dataclass
from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Measure, Verdict
from kvtrail_collector.detectors.registry import DETECTORS
from kvtrail_collector.ledger_parts import TIER_NAMES, Component
from kvtrail_collector.population import Cause
from kvtrail_collector.verdicts_case import Case, Finding
from kvtrail_collector.verdicts_components import component_findings
from kvtrail_collector.verdicts_table import CODE_OF, MIX_SHIFT, is_more_specific

MIN_CONFIDENCE: Final = 0.95
MIN_SHARE: Final = 0.2
MOST_CAUSES: Final = 3
_TIERS: Final = {name: tier for tier, name in TIER_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Claim:
    """A code with its action, and what of the excess it explains: columns of the figures, and how much they are together."""

    code: str
    action: str
    tier: str | None
    finding: Finding
    columns: tuple[int, ...]
    excess_ns: float


def population_verdicts(case: Case) -> tuple[Verdict, ...]:
    """The verdicts that stand, largest share first; none where the first cause is not sure, or nobody can name it."""
    claims = _disjoint(_claims(case))
    for number in range(min(MOST_CAUSES, len(claims)), 0, -1):
        named = claims[:number]
        if _is_largest(case, named) and all(_is_sure(case, claim, named) for claim in named):
            # What is broken stands before what is not.
            ranked = sorted(named, key=lambda claim: claim.code == MIX_SHIFT.name)
            return tuple(_verdict(case, claim, named) for claim in ranked)
    return ()


def best_lead(case: Case) -> float:
    """In how many resamples what leads leads: the first cause alone, or all that one finding explains."""
    first = max(range(len(case.causes)), key=lambda column: case.excess.causes_ns[column])
    groups = [[first], *(list(claim.columns) for claim in _claims(case) if first in claim.columns)]
    return max(case.resamples.lead_share(group) for group in groups)


def _claims(case: Case) -> list[Claim]:
    """What detectors find, and what follows from the component alone where no detector tests it."""
    claims = []
    for place, tier in _asked(case):
        detector = DETECTORS[place]
        if (found := detector.find(case, tier)) is not None:
            claims.append(_claim(case, detector.code, detector.action, None if tier is None else TIER_NAMES[tier], found))
    tested = frozenset(cause for cause in case.causes if not _untested(case, cause) and _has_detector(cause.component))
    claims += [_claim(case, *found) for found in component_findings(case, tested)]
    return [claim for claim in claims if claim.columns]


def _has_detector(component: Component) -> bool:
    """Whether there is a detector of the code that a component stands for: then the component alone is not enough."""
    code = CODE_OF.get(component)
    return any(component in detector.components and detector.code == (code and code.name) for detector in DETECTORS)


def _untested(case: Case, cause: Cause) -> bool:
    """Whether detectors cannot test a cause: what they know of waiting is about the wait for a first token, not of gaps."""
    return case.measure is Measure.GAPS and cause.tier is None


def _asked(case: Case) -> list[tuple[int, Tier | None]]:
    """Each detector with each tier in which one of its components grew."""
    grown = [cause for cause in case.causes if case.excess_ns(cause) > 0]
    pairs = {
        (place, _TIERS.get(cause.tier) if cause.tier else None)
        for place, detector in enumerate(DETECTORS)
        for cause in grown
        if cause.component in detector.components and not _untested(case, cause)
    }
    return sorted(pairs, key=lambda pair: (pair[0], -1 if pair[1] is None else pair[1]))


def _claim(case: Case, code: str, action: str, tier: str | None, finding: Finding) -> Claim:
    """A finding with what it explains."""
    columns = tuple(column for column, cause in enumerate(case.causes) if cause in finding.explains)
    return Claim(code, action, tier, finding, columns, sum(max(float(case.excess.causes_ns[own]), 0.0) for own in columns))


def _disjoint(claims: list[Claim]) -> list[Claim]:
    """No nanosecond is explained twice: the more specific code keeps it, else the one that explains more; largest first."""
    kept: list[Claim] = []
    for claim in sorted(claims, key=lambda claim: (-claim.excess_ns, claim.code)):
        rivals = [other for other in kept if set(other.columns) & set(claim.columns)]
        if not rivals:
            kept.append(claim)
        elif all(is_more_specific(claim.code, rival.code) for rival in rivals):
            kept = [other for other in kept if other not in rivals] + [claim]
    return sorted(kept, key=lambda claim: (-claim.excess_ns, claim.code))


def _is_largest(case: Case, named: list[Claim]) -> bool:
    """Whether what grew most is among what is named: nobody is convicted beside a larger cause without a name."""
    first = max(range(len(case.causes)), key=lambda column: case.excess.causes_ns[column])
    return any(first in claim.columns for claim in named)


def _is_sure(case: Case, claim: Claim, named: list[Claim]) -> bool:
    """Whether a claim is large, more than chance, and ahead of every cause that is not named with it."""
    low_ns, _ = case.resamples.interval_ns(list(claim.columns))
    return _share(case, claim) >= MIN_SHARE and low_ns > 0 and _confidence(case, claim, named) >= MIN_CONFIDENCE


def _confidence(case: Case, claim: Claim, named: list[Claim]) -> float:
    """The share of resamples in which a claim is ahead of every cause that is not named with it."""
    beside = tuple(column for other in named if other is not claim for column in other.columns)
    return case.resamples.lead_share(list(claim.columns), beside)


def _share(case: Case, claim: Claim) -> float:
    """How much of all that grew a claim explains."""
    positive = sum(max(float(ns), 0.0) for ns in case.excess.causes_ns)
    return claim.excess_ns / positive if positive else 0.0


def _verdict(case: Case, claim: Claim, named: list[Claim]) -> Verdict:
    """A claim that stands."""
    low_ns, high_ns = case.resamples.interval_ns(list(claim.columns))
    largest = max(claim.columns, key=lambda column: case.excess.causes_ns[column])
    return Verdict(
        code=claim.code,
        tier=claim.tier,
        tenant=claim.finding.tenant,
        component=case.causes[largest].component,
        share=_share(case, claim),
        confidence=min(_confidence(case, claim, named), case.window.coverage, case.reference.coverage),
        basis="population",
        window=case.window,
        evidence=claim.finding.evidence
        | {"excess_ms": claim.excess_ns / 1e6, "excess_low_ms": low_ns / 1e6, "excess_high_ms": high_ns / 1e6}
        | {"reference": case.reference_side},
        events=claim.finding.events,
        action=claim.action,
        also=claim.finding.also,
    )
