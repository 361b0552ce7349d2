"""Verdicts in plain words: what happened, how sure that is, and on which figures it stands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kvtrail_dashboards.answers import Attribution, Figure, Verdict
from kvtrail_dashboards.compute.events import name_of_event
from kvtrail_dashboards.compute.families import label_of
from kvtrail_dashboards.compute.figures import evidence_lines, percent, times
from kvtrail_dashboards.compute.names import Names, name_of
from kvtrail_dashboards.compute.wall import WallTime

_BASES: Final = {
    "population": "In that share of bootstrap resamples of both windows this cause comes first.",
    "mechanism": "Counted from the events of the mechanism itself.",
    "invariant": "One broken rule is enough; less than 100 % only where a hole in the events could explain it.",
}


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """One verdict as the page tells it."""

    code: str
    where: str
    headline: str
    detail: str
    action: str
    certainty: str
    certainty_why: str
    share: str
    basis: str
    also: tuple[str, ...]
    evidence: tuple[tuple[str, str], ...]
    events: tuple[str, ...]


def words_of(verdict: Verdict, names: Names | None = None) -> VerdictWords:
    """One verdict in words. A code that is not known here, from a newer collector, is told by its component."""
    verdict = _named(verdict, names or {})
    headline, detail = _TOLD.get(verdict.code, (_any_headline, _no_detail))
    return VerdictWords(
        code=verdict.code,
        where=" · ".join(word for word in (verdict.tier, verdict.tenant and f"tenant {verdict.tenant}") if word),
        headline=headline(verdict),
        detail=detail(verdict.evidence),
        action=_sentence(verdict.action),
        certainty=percent(verdict.confidence),
        certainty_why=_BASES.get(verdict.basis, ""),
        share=percent(verdict.share),
        basis=verdict.basis,
        also=verdict.also,
        evidence=evidence_lines(verdict.evidence),
        events=tuple(name_of_event(event) for event in verdict.events),
    )


def _named(verdict: Verdict, names: Names) -> Verdict:
    """The verdict with its tenants by name, in its own field and in its evidence."""
    evidence = {key: names.get(value, value) if isinstance(value, str) else value for key, value in verdict.evidence.items()}
    tenant = verdict.tenant and name_of(names, verdict.tenant)
    return msgspec.structs.replace(verdict, tenant=tenant, evidence=evidence)


def what_happened(attribution: Attribution, wall: WallTime) -> str:
    """The spike in one sentence: when, how many requests, how much slower than what."""
    window, reference = attribution.window, attribution.reference
    if window is None:
        return ""
    when = f"{wall.span(window)}, {window.requests:,} requests"
    if attribution.excess_tail_ms is None or attribution.quantile is None or reference is None:
        return f"{when}."
    side = "before" if reference.start_ns < window.start_ns else "after"
    tail = f"the slowest {percent(1 - attribution.quantile)} took {_lift(attribution.excess_tail_ms)} to their first token"
    return f"{when}: {tail} than in the {reference.requests:,} requests of the reference {side} it."


def _lift(excess_ms: float) -> str:
    """How much slower, in words."""
    return f"{abs(excess_ms):,.0f} ms {'longer' if excess_ms >= 0 else 'less'} on average"


def _sentence(text: str) -> str:
    """A phrase as a sentence."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _tier_slow(verdict: Verdict) -> str:
    """The device itself got slower."""
    return f"Reading from {verdict.tier} got slower."


def _tier_slow_detail(evidence: Mapping[str, Figure | None]) -> str:
    """By how much."""
    ratio = times(evidence.get("read_cost_ratio"))
    return f"Each byte takes {ratio} the device time that it took in the reference." if ratio else ""


def _tier_queue(verdict: Verdict) -> str:
    """The queue grew, not the service."""
    return f"Loads wait for their turn at {verdict.tier}; the device is as fast as before."


def _tier_queue_detail(evidence: Mapping[str, Figure | None]) -> str:
    """Behind whose work."""
    kind, share = evidence.get("blamed_kind"), evidence.get("blamed_share")
    if not isinstance(kind, str) or not isinstance(share, float | int):
        return ""
    tenant = evidence.get("blamed_tenant")
    whose = f" of tenant {tenant}" if tenant else ""
    return f"{percent(share)} of that waiting was behind {kind.replace('_', ' ')} work{whose}."


def _sched_queue(_verdict: Verdict) -> str:
    """The scheduler served others."""
    return "Requests wait while the step's token budget goes to others."


def _sched_queue_detail(evidence: Mapping[str, Figure | None]) -> str:
    """Whom it served."""
    long, share = evidence.get("long_prompt_tokens"), evidence.get("long_prompts_share")
    told = []
    if isinstance(long, float | int) and isinstance(share, float | int) and share > 0:
        told.append(f"{percent(share)} of it went to prompts of more than {long:,.0f} tokens.")
    taker, tokens = evidence.get("taken_by"), evidence.get("taker_prompt_tokens")
    if taker is not None and isinstance(tokens, float | int):
        told.append(f"The largest taker is request {taker}, a prompt of {tokens:,.0f} tokens.")
    return " ".join(told)


def _any_headline(verdict: Verdict) -> str:
    """A headline made from the verdict's fields."""
    what = label_of(verdict.component, verdict.tier) if verdict.component else verdict.code.replace("_", " ").lower()
    return f"More time goes to {what}." if verdict.basis == "population" else f"Found: {what}."


def _no_detail(_evidence: Mapping[str, Figure | None]) -> str:
    """Nothing more is known."""
    return ""


_Headline = Callable[[Verdict], str]
_Detail = Callable[[Mapping[str, Figure | None]], str]
_TOLD: Final[Mapping[str, tuple[_Headline, _Detail]]] = {
    "TIER_SLOW": (_tier_slow, _tier_slow_detail),
    "TIER_QUEUE": (_tier_queue, _tier_queue_detail),
    "SCHED_QUEUE": (_sched_queue, _sched_queue_detail),
}
