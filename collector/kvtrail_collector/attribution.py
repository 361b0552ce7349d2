"""Why the slow requests of a spike were slow: windows, tails, certainty, blame and verdicts in one answer (LEDGER §5)."""

import json
from typing import Final

import msgspec
import pyarrow as pa
from kvtrail_schema.identity import Stream
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_compare import Comparison, comparability, comparisons
from kvtrail_collector.attribution_shapes import Attribution, Delta, Measure, OtherSpike, Outcome, Verdict, Window
from kvtrail_collector.blame_accounts import Blame
from kvtrail_collector.bootstrap import Resamples
from kvtrail_collector.detectors.hits_by_tier import fills
from kvtrail_collector.facts_build import Recording, recording_of_table
from kvtrail_collector.facts_rows import Interval, merged
from kvtrail_collector.ledger_parts import TIER_NAMES
from kvtrail_collector.population import Population, gap_population, population_of
from kvtrail_collector.recorded import Recorded
from kvtrail_collector.verdicts import MIN_CONFIDENCE, best_lead, population_verdicts
from kvtrail_collector.verdicts_case import Case
from kvtrail_collector.verdicts_mix import is_mix_alone, mix_verdict
from kvtrail_collector.window import MIN_LIFT_NS, Choice, choose
from kvtrail_collector.window_scan import MIN_REQUESTS
from kvtrail_collector.window_search import search_windows

EXEMPLARS: Final = 10
_BLAME_ROWS: Final = 20
_NOTHING: Final = {Measure.TTFT: "no request arrived", Measure.GAPS: "no request got two tokens"}
_HELP: Final = "more requests or a longer reference would help"


def attribute(
    table: pa.Table,
    window: Interval | None = None,
    reference: Interval | None = None,
    *,
    seed: int = 0,
    holes: dict[Stream, list[Interval]] | None = None,
    measure: Measure = Measure.TTFT,
) -> Attribution:
    """Explain the spike in a table of events, or the window given. Pure; about 1 s for 4,000 requests on one core.

    The table has the pinned columns and `engine`, `epoch`, `rank`, and the rows of all kinds unless `holes` says where
    rows are missing. Windows are [start, end) on the clock of `t_ns`. The same seed gives the same answer. What a drill
    injected is dropped before anything looks at it.
    """
    recording = recording_of_table(table, holes)
    return attribute_recording(recording, window, reference, seed=seed, measure=measure)


def attribute_recording(
    recording: Recording,
    window: Interval | None = None,
    reference: Interval | None = None,
    *,
    seed: int = 0,
    measure: Measure = Measure.TTFT,
    population: Population | None = None,
) -> Attribution:
    """As `attribute`, for a recording that is there already, and its population, where somebody has computed it."""
    device = device_of(recording)
    population = _population(recording, measure) if population is None else population
    if not len(population):
        return Attribution(why_not=_NOTHING[measure], measure=measure, device=device)
    searched = window is None
    spikes = search_windows(population, seed=seed) if window is None else [window]
    if not spikes:
        return no_spike(len(population), measure, device)
    window, *others = spikes
    choice = choose(population, window, reference, others=others, seed=seed)
    if choice is None:
        own = window_of(recording, population, window)
        return Attribution(window=own, why_not=_too_few(own.requests), measure=measure, device=device)
    return _Explainer(recording, population, choice, measure).explain(searched=searched, seed=seed)


def _population(recording: Recording, measure: Measure) -> Population:
    """What is measured: requests, or gaps between tokens."""
    return population_of(recording) if measure is Measure.TTFT else gap_population(recording)


def nothing_slower(why: str, measure: Measure, device: str | None) -> Attribution:
    """The answer where a search finds no spike."""
    return Attribution(outcome=Outcome.NOTHING_SLOWER, why_not=why, measure=measure, device=device)


def no_spike(searched: int, measure: Measure, device: str | None) -> Attribution:
    """The answer where a search of so many requests or gaps finds nothing; few of them cannot be searched."""
    if searched < MIN_REQUESTS:
        return Attribution(why_not=f"too few requests ({searched}) to search for a spike", measure=measure, device=device)
    return nothing_slower("no spike: no stretch of time is slower than chance makes one", measure, device)


def explain(
    recording: Recorded,
    choice: Choice,
    *,
    searched: bool,
    seed: int,
    population: Population,
    usual: Interval | None = None,
) -> Attribution:
    """As `attribute`, for a window and a reference that are chosen, and a recording of at least their requests.

    Places of the population are those of the recording. `usual` is the part of the reference that is in the recording, where
    not all of it is: by it mechanisms are judged.
    """
    explainer = _Explainer(recording, population, choice, Measure.TTFT, usual)
    return explainer.explain(searched=searched, seed=seed)


class _Explainer:
    """Puts one answer together. Used once, by one thread."""

    def __init__(
        self,
        recording: Recorded,
        population: Population,
        choice: Choice,
        measure: Measure,
        usual: Interval | None = None,
    ) -> None:
        self.recording, self.choice, self.measure, self.device = recording, choice, measure, device_of(recording)
        self.window = window_of(recording, population, choice.window)
        self.reference = window_of(recording, population, choice.reference)
        self.requests = population.arrived_in(*choice.window)
        self.reference_requests = population.arrived_in(*choice.reference)
        self.usual = window_of(recording, population, usual or choice.reference)
        self.usual_requests = population.arrived_in(*(usual or choice.reference))
        self.others = tuple(OtherSpike(*other, len(population.arrived_in(*other))) for other in choice.others)
        self.able = comparability(self.requests, self.reference_requests)
        self.blame = Blame(recording)

    def explain(self, *, searched: bool, seed: int) -> Attribution:
        """The answer at the highest quantile at which the cause is sure, else at the highest: as much as can be known."""
        if self.choice.refused:
            return self._frame(None, self.choice.refused)
        if not self.able.quantiles:
            return self._frame(None, self.able.unknown or _too_few(self.window.requests))
        answers = []
        for compared in comparisons(
            self.requests,
            self.reference_requests,
            self.able,
            min_lift_ns=MIN_LIFT_NS[self.measure],
            searched=searched,
            seed=seed,
        ):
            answers.append(self._explained(compared))
            if answers[-1].identified:
                return msgspec.structs.replace(answers[-1], notes=(*answers[-1].notes, *_higher(answers[:-1])))
        lifted = [answer for answer in answers if answer.components]
        if searched and not lifted:
            text = f"no spike: the slowest stretch is less than {self._least()} slower"
            return nothing_slower(text, self.measure, self.device)
        return (lifted or answers)[0]

    def _explained(self, compared: Comparison) -> Attribution:
        """The answer at one quantile."""
        if compared.resamples is None or not (compared.is_lifted or compared.is_mix):
            frame = self._frame(compared, f"the window is less than {self._least()} slower than its reference")
            return msgspec.structs.replace(frame, outcome=Outcome.NOTHING_SLOWER)
        case = self._case(compared, compared.resamples)
        if compared.is_mix:
            return self._whole(compared, case, (mix_verdict(case, compared.resamples),), None)
        if compared.is_chance and compared.is_partly_mix and is_mix_alone(case):
            return self._whole(compared, case, (mix_verdict(case, compared.resamples),), None)
        if compared.is_chance:
            return self._whole(compared, case, (), f"not identifiable: the excess may be chance; {_HELP}")
        verdicts = population_verdicts(case)
        return self._whole(compared, case, verdicts, None if verdicts else _unsure(case))

    def _least(self) -> str:
        """The lift below which nothing is said."""
        return f"10 % or {MIN_LIFT_NS[self.measure] // 1_000_000} ms"

    def _case(self, compared: Comparison, resamples: Resamples) -> Case:
        """What verdicts are made from."""
        return Case(
            recording=self.recording,
            window=self.window,
            reference=self.usual,
            reference_side=self.choice.side,
            requests=self.requests,
            reference_requests=self.usual_requests,
            excess=compared.excess,
            resamples=resamples,
            blame=self.blame,
            measure=self.measure,
        )

    def _whole(self, compared: Comparison, case: Case, verdicts: tuple[Verdict, ...], why_not: str | None) -> Attribution:
        """The full answer for a window that is slower by enough to speak of."""
        frame = self._frame(compared, why_not)
        exemplars = case.exemplars(EXEMPLARS)
        return msgspec.structs.replace(
            frame,
            notes=frame.notes if verdicts else (*frame.notes, *_filling(case)),
            outcome=Outcome.EXPLAINED if verdicts else Outcome.UNDECIDED,
            components=_deltas(case),
            identified=why_not is None,
            blame=self.blame.rows(self.blame.blamed_at(case.tail_op_places))[:_BLAME_ROWS],
            exemplars=tuple(text or handle for handle, text in exemplars.items()),
            exemplar_requests=tuple(exemplars),
            verdicts=verdicts,
        )

    def _frame(self, compared: Comparison | None, why_not: str | None) -> Attribution:
        """The frame of an answer, with the figures that are known."""
        excess = None if compared is None else compared.excess
        return Attribution(
            window=self.window,
            reference=self.reference,
            quantile=None if compared is None else float(compared.quantile),
            excess_tail_ms=None if excess is None else float(excess.tail_ns) / 1e6,
            excess_quantile_ms=None if excess is None else excess.quantile_ns / 1e6,
            mix_ms=None if excess is None else float(excess.mix_ns) / 1e6,
            why_not=why_not,
            notes=(*self.choice.notes, *self.able.notes),
            other_spikes=self.others,
            measure=self.measure,
            device=self.device,
        )


def _higher(answers: list[Attribution]) -> list[str]:
    """What is said of the quantiles above the one at which the cause is sure."""
    return [f"P{(answer.quantile or 0) * 100:g}: {answer.why_not}" for answer in answers]


def _deltas(case: Case) -> tuple[Delta, ...]:
    """Each cause with its interval, largest excess first."""
    positive = sum(max(float(ns), 0.0) for ns in case.excess.causes_ns) or 1.0
    found = []
    for column, (cause, ns) in enumerate(zip(case.causes, case.excess.causes_ns, strict=True)):
        low, high = case.resamples.interval_ns([column])
        share = max(float(ns), 0.0) / positive
        found.append(Delta(cause.component, cause.tier, float(ns) / 1e6, low / 1e6, high / 1e6, share))
    return tuple(sorted((delta for delta in found if delta.excess_ms or delta.high_ms), key=lambda delta: -delta.excess_ms))


def _unsure(case: Case) -> str | None:
    """Why nothing is convicted: the first cause leads in too few resamples, or no detector confirms how it came about."""
    first = max(range(len(case.causes)), key=lambda column: case.excess.causes_ns[column])
    name, lead = case.causes[first].component.value, best_lead(case)
    if lead < MIN_CONFIDENCE:
        return f"not identifiable: {name} leads in only {lead:.0%} of resamples; {_HELP}"
    return None


def _filling(case: Case) -> list[str]:
    """What is said of tiers that filled while the reference lasted: the window may be how the engine is by now."""
    slower = {cause.tier for cause in case.causes if case.excess_ns(cause) > 0}
    return [
        f"{name} was still filling while the reference lasted: compare with a later one"
        for tier, name in TIER_NAMES.items()
        if name in slower and fills(case, tier)
    ]


def _too_few(requests: int) -> str:
    """Why nothing can be said of few requests."""
    return f"too few requests ({requests} in the window): even a median needs 60 there and in a reference before or after it"


def window_of(recording: Recorded, population: Population, interval: Interval) -> Window:
    """A stretch of time with its requests, and how much of it no hole makes unknown."""
    start, end = interval
    clipped = [(max(a, start), min(b, end)) for holes in recording.rows.holes for a, b in holes if a < end and b > start]
    lost = sum(b - a for a, b in merged(clipped))
    coverage = 1 - lost / (end - start) if end > start else 1.0
    return Window(start, end, len(population.arrived_in(start, end)), coverage)


def device_of(recording: Recorded) -> str | None:
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
