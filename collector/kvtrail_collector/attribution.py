"""Why the slow requests of a spike were slow: windows, tails, certainty, blame and verdicts in one answer (LEDGER §5)."""

import json
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import Attribution, Delta, Verdict, Window
from kvtrail_collector.attribution_tail import Excess, excess_of, mix_weights
from kvtrail_collector.blame_accounts import Blame
from kvtrail_collector.bootstrap import Resamples, resample
from kvtrail_collector.facts_build import Recording, recording_of_table
from kvtrail_collector.facts_rows import Interval, merged
from kvtrail_collector.population import Population, population_of
from kvtrail_collector.verdicts import MIN_CONFIDENCE, explained_columns, population_verdicts
from kvtrail_collector.verdicts_case import Case
from kvtrail_collector.window import MIN_LIFT_NS, MIN_LIFT_SHARE, Choice, choose, search_window

EXEMPLARS: Final = 10
_BLAME_ROWS: Final = 20


def attribute(
    table: pa.Table,
    window: Interval | None = None,
    reference: Interval | None = None,
    *,
    seed: int = 0,
    holes: dict[Stream, list[Interval]] | None = None,
) -> Attribution:
    """Explain the spike in a table of events, or the window given. Pure; about 1 s for 4,000 requests on one core.

    The table has the pinned columns and `engine`, `epoch`, `rank`, and the rows of all kinds unless `holes` says where
    rows are missing. Windows are [start, end) on the clock of `t_ns`. The same seed gives the same answer. What a drill
    injected is dropped before anything looks at it.
    """
    recording = recording_of_table(table, holes)
    return attribute_recording(recording, window, reference, seed=seed)


def attribute_recording(
    recording: Recording, window: Interval | None = None, reference: Interval | None = None, *, seed: int = 0
) -> Attribution:
    """As `attribute`, for a recording that is there already."""
    device = device_of(recording)
    if not recording.requests:
        return Attribution(why_not="no request arrived", device=device)
    population = population_of(recording)
    searched = window is None
    window = window or search_window(population, seed=seed)
    if window is None:
        return Attribution(why_not="no spike: no stretch of time is slower than chance makes one", device=device)
    choice = choose(population, window, reference)
    if choice is None:
        own = window_of(recording, population, window)
        return Attribution(window=own, why_not=_too_few(own.requests), device=device)
    return _Explainer(recording, population, choice, device).explain(searched=searched, seed=seed)


class _Explainer:
    """Puts one answer together. Used once, by one thread."""

    def __init__(self, recording: Recording, population: Population, choice: Choice, device: str | None) -> None:
        self.recording, self.choice, self.device = recording, choice, device
        self.window = window_of(recording, population, choice.window)
        self.reference = window_of(recording, population, choice.reference)
        self.requests = population.arrived_in(*choice.window)
        self.reference_requests = population.arrived_in(*choice.reference)

    def explain(self, *, searched: bool, seed: int) -> Attribution:
        """The answer, or as much of it as can be known."""
        if (censored := self._too_many_censored()) is not None:
            return self._answer(why_not=censored)
        excess = excess_of(self.requests, self.reference_requests, self.choice.quantile)
        base = float(excess.window.mean_ns - excess.tail_ns)
        lift = float(excess.within_ns)
        if lift < MIN_LIFT_NS or lift < MIN_LIFT_SHARE * base:
            return self._no_lift(excess, searched=searched)
        return self._lifted(excess, self._resample(seed))

    def _resample(self, seed: int) -> Resamples:
        """Resamples of both windows, the reference weighted to the mix of the window."""
        weights = mix_weights(self.requests.strata, self.reference_requests.strata)
        floats = np.array([float(weight) for weight in weights], dtype=np.float64)
        return resample(self.requests, self.reference_requests, float(self.choice.quantile), floats, seed=seed)

    def _no_lift(self, excess: Excess, *, searched: bool) -> Attribution:
        """Below 10 % or 5 ms nothing is said; a window that was only searched for is then none at all."""
        if searched:
            return Attribution(why_not="no spike: the slowest stretch is less than 10 % or 5 ms slower", device=self.device)
        return self._answer(excess, why_not="the window is less than 10 % or 5 ms slower than its reference")

    def _lifted(self, excess: Excess, resamples: Resamples) -> Attribution:
        """The full answer for a window that is slower by enough to speak of."""
        blame = Blame(self.recording)
        case = Case(
            recording=self.recording,
            window=self.window,
            reference=self.reference,
            reference_side=self.choice.side,
            requests=self.requests,
            reference_requests=self.reference_requests,
            excess=excess,
            resamples=resamples,
            blame=blame,
        )
        chance = _chance(case)
        verdicts = () if chance else population_verdicts(case)
        why_not = chance or _unsure(case, verdicts)
        waits = [op for tier in Tier for op in case.tail_ops(tier)]
        return msgspec.structs.replace(
            self._answer(excess, why_not),
            components=_deltas(case),
            identified=why_not is None,
            # A cause that does not lead among all of them is named in the components, and convicted nowhere.
            blame=blame.rows(blame.blamed(waits))[:_BLAME_ROWS],
            exemplars=tuple(facts.label for facts in case.tail[:EXEMPLARS]),
            verdicts=verdicts if why_not is None else (),
        )

    def _too_many_censored(self) -> str | None:
        """Why the quantile is not known, where too many requests never got their first token."""
        p = self.choice.quantile
        for name, requests in (("window", self.requests), ("reference", self.reference_requests)):
            censored = int(requests.censored.sum())
            if censored > (1 - p) * len(requests):
                return (
                    f"P{float(p) * 100:g} is not known: {censored} of {len(requests)} requests of the {name} got no first token"
                )
        return None

    def _answer(self, excess: Excess | None = None, why_not: str | None = None) -> Attribution:
        """The frame of an answer, with the figures that are known."""
        return Attribution(
            window=self.window,
            reference=self.reference,
            quantile=float(self.choice.quantile),
            excess_tail_ms=None if excess is None else float(excess.tail_ns) / 1e6,
            excess_quantile_ms=None if excess is None else excess.quantile_ns / 1e6,
            mix_ms=None if excess is None else float(excess.mix_ns) / 1e6,
            why_not=why_not,
            device=self.device,
        )


def _deltas(case: Case) -> tuple[Delta, ...]:
    """Each cause with its interval, largest excess first."""
    positive = sum(max(float(ns), 0.0) for ns in case.excess.causes_ns) or 1.0
    found = []
    for column, (cause, ns) in enumerate(zip(case.causes, case.excess.causes_ns, strict=True)):
        low, high = case.resamples.interval_ns([column])
        share = max(float(ns), 0.0) / positive
        found.append(Delta(cause.component, cause.tier, float(ns) / 1e6, low / 1e6, high / 1e6, share))
    return tuple(sorted((delta for delta in found if delta.excess_ms or delta.high_ms), key=lambda delta: -delta.excess_ms))


def _chance(case: Case) -> str | None:
    """Why the excess as a whole may be nothing; None where its interval excludes 0."""
    low, _ = case.resamples.interval_ns(list(range(len(case.causes))))
    return None if low > 0 else "not identifiable: the excess may be chance; more requests or a longer reference would help"


def _unsure(case: Case, verdicts: tuple[Verdict, ...]) -> str | None:
    """Why the first cause is not identified; None where it is: it leads in 95 % of resamples.

    What one verdict explains counts together: a slow device and the queue before it are one cause.
    """
    columns = list(range(len(case.causes)))
    first = max(columns, key=lambda column: case.excess.causes_ns[column])
    groups = [[first], *(explained_columns(case, verdict) for verdict in verdicts)]
    agreed = max(case.resamples.lead_share(group) for group in groups)
    if agreed >= MIN_CONFIDENCE:
        return None
    name = case.causes[first].component.value
    return f"not identifiable: {name} leads in only {agreed:.0%} of resamples; more requests or a longer reference would help"


def _too_few(requests: int) -> str:
    """Why nothing can be said of few requests."""
    return f"too few requests ({requests} in the window): even a median needs 60 there and in a reference"


def window_of(recording: Recording, population: Population, interval: Interval) -> Window:
    """A stretch of time with its requests, and how much of it no hole makes unknown."""
    start, end = interval
    clipped = [(max(a, start), min(b, end)) for line in recording.timelines for a, b in line.holes if a < end and b > start]
    lost = sum(b - a for a, b in merged(clipped))
    coverage = 1 - lost / (end - start) if end > start else 1.0
    return Window(start, end, len(population.arrived_in(start, end)), coverage)


def device_of(recording: Recording) -> str | None:
    """The label that the engine's manifest gives its figures; None where it gives none."""
    rows = recording.rows
    for text in rows.text[rows.of_kinds(Kind.MANIFEST_DECLARED)].tolist():
        try:
            manifest = json.loads(text or "{}")
        except json.JSONDecodeError:
            continue
        device = manifest.get("device") if isinstance(manifest, dict) else None
        if isinstance(device, str):
            return device
    return None
