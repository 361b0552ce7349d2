"""What attribution says of a population alone, without the events that detectors ask: the cause that it is sure of."""

from kvtrail_collector.attribution_compare import Comparison, comparability, comparisons
from kvtrail_collector.attribution_shapes import Measure
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.population import Population
from kvtrail_collector.verdicts import MIN_CONFIDENCE
from kvtrail_collector.window import MIN_LIFT_NS, choose, search_window

MIX = "mix"


def named(population: Population, window: Interval | None = None, *, seed: int = 0) -> str | None:
    """The name of the sure cause: `mix`, a component, or a tier, whose queue and reads count together; None where none is."""
    searched = window is None
    window = window or search_window(population, seed=seed)
    choice = choose(population, window, None, seed=seed) if window else None
    if choice is None or choice.refused:
        return None
    requests, reference = population.arrived_in(*choice.window), population.arrived_in(*choice.reference)
    able = comparability(requests, reference)
    names = (
        sure(one)
        for one in comparisons(requests, reference, able, min_lift_ns=MIN_LIFT_NS[Measure.TTFT], searched=searched, seed=seed)
    )
    return next((name for name in names if name), None)


def sure(compared: Comparison) -> str | None:
    """The cause that is sure at one quantile."""
    if compared.resamples is None or not (compared.is_lifted or compared.is_mix):
        return None
    if compared.is_mix:
        return MIX
    causes, figures = compared.window.causes, compared.excess.causes_ns
    first = max(range(len(causes)), key=lambda column: figures[column])
    tier = causes[first].tier
    group = [column for column, cause in enumerate(causes) if column == first or (tier and cause.tier == tier)]
    if compared.is_chance or compared.resamples.lead_share(group) < MIN_CONFIDENCE:
        return None
    return tier or causes[first].component.value
