"""From causes to verdicts: which detectors are asked, and which of their findings may stand (LEDGER §6)."""

from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_collector.attribution_shapes import Verdict
from kvtrail_collector.detectors.registry import DETECTORS
from kvtrail_collector.ledger_parts import TIER_NAMES
from kvtrail_collector.verdicts_case import Case, Detector, Finding

MIN_CONFIDENCE: Final = 0.95
MIN_SHARE: Final = 0.2
_TIERS: Final = {name: tier for tier, name in TIER_NAMES.items()}


def population_verdicts(case: Case) -> tuple[Verdict, ...]:
    """The verdicts that stand: their causes lead in 95 % of resamples among all that a detector explains.

    A cause whose mechanism no detector confirms gives no verdict: it stays in the components, under its own name.
    """
    claims = [(detector, tier, found) for detector, tier in _asked(case) if (found := detector.find(case, tier))]
    among = sorted({column for _, _, finding in claims for column in columns_of(case, finding)})
    verdicts = [_verdict(case, detector, tier, finding, among) for detector, tier, finding in claims]
    return tuple(sorted((verdict for verdict in verdicts if verdict), key=lambda verdict: -verdict.share))


def _asked(case: Case) -> list[tuple[Detector, Tier | None]]:
    """Each detector with each tier in which one of its components grew."""
    grown = [cause for cause in case.causes if case.excess_ns(cause) > 0]
    pairs = {
        (place, _TIERS.get(cause.tier) if cause.tier else None)
        for place, detector in enumerate(DETECTORS)
        for cause in grown
        if cause.component in detector.components
    }
    ordered = sorted(pairs, key=lambda pair: (pair[0], -1 if pair[1] is None else pair[1]))
    return [(DETECTORS[place], tier) for place, tier in ordered]


def columns_of(case: Case, finding: Finding) -> list[int]:
    """The columns of the causes that a finding explains."""
    return [column for column, cause in enumerate(case.causes) if cause in finding.explains]


def explained_columns(case: Case, verdict: Verdict) -> list[int]:
    """The columns of the causes that a verdict explains: the components of its detector, in its tier."""
    components = {component for detector in DETECTORS if detector.code == verdict.code for component in detector.components}
    return [column for column, cause in enumerate(case.causes) if cause.tier == verdict.tier and cause.component in components]


def _verdict(case: Case, detector: Detector, tier: Tier | None, finding: Finding, among: list[int]) -> Verdict | None:
    """A finding as a verdict, if it is large and sure enough."""
    columns = columns_of(case, finding)
    positive = sum(max(float(ns), 0.0) for ns in case.excess.causes_ns)
    own = {column: max(float(case.excess.causes_ns[column]), 0.0) for column in columns}
    share = sum(own.values()) / positive if positive else 0.0
    confidence = case.resamples.first_share(columns, among)
    low_ns, high_ns = case.resamples.interval_ns(columns)
    if share < MIN_SHARE or confidence < MIN_CONFIDENCE or low_ns <= 0:
        return None
    return Verdict(
        code=detector.code,
        tier=None if tier is None else TIER_NAMES[tier],
        tenant=finding.tenant,
        component=case.causes[max(own, key=lambda column: own[column])].component,
        share=share,
        confidence=confidence,
        basis="population",
        window=case.window,
        evidence=finding.evidence
        | {"excess_ms": sum(own.values()) / 1e6, "excess_low_ms": low_ns / 1e6, "excess_high_ms": high_ns / 1e6}
        | {"reference": case.reference_side},
        events=finding.events,
        action=detector.action,
        also=finding.also,
    )
