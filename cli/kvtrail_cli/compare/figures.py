"""From what happened on a path to its figures; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from kvtrail_engine.request import Outcome, RequestResult

from kvtrail_cli.compare.shapes import PathFigures
from kvtrail_cli.quantiles import quantiles_ms

_NS_PER_MS = 1_000_000
TIE_SHARE = 0.05
TIE_MS = 1.0
TIE_TEXT = "within 5 % or 1 ms of the lowest median TTFT"


@dataclass(slots=True)
class Tally:
    """One path's requests and time so far; the counters of engine and device are added stretch by stretch."""

    path: str
    device: str
    block_bytes: int
    energy_reason: str | None
    results: list[RequestResult] = field(default_factory=list)
    elapsed_ns: int = 0
    busy_ns: int = 0
    energy_j: float = 0.0

    def joined(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(
            self.path,
            self.device,
            self.block_bytes,
            self.energy_reason,
            self.results + other.results,
            self.elapsed_ns + other.elapsed_ns,
            self.busy_ns + other.busy_ns,
            self.energy_j + other.energy_j,
        )

    def figures(self, slo_ttft_ms: float) -> PathFigures:
        """What is shown of it."""
        answered = [result for result in self.results if result.outcome is Outcome.FINISHED]
        good = [result for result in answered if (result.ttft_ns or 0) <= slo_ttft_ms * _NS_PER_MS]
        elapsed_s = max(self.elapsed_ns, 1) / 1e9
        return PathFigures(
            path=self.path,
            requests=len(self.results),
            restore_bytes=sum(sum(result.restored.values()) for result in self.results) * self.block_bytes,
            ttft_ms=quantiles_ms([result.ttft_ns for result in answered if result.ttft_ns is not None]),
            tpot_ms=quantiles_ms([result.tpot_ns for result in answered if result.tpot_ns is not None]),
            goodput_rps=round(len(good) / elapsed_s, 3),
            gpu_idle=round(max(1 - self.busy_ns / max(self.elapsed_ns, 1), 0.0), 4),
            error_rate=round(1 - len(answered) / max(len(self.results), 1), 4),
            energy_j=None if self.energy_reason else round(self.energy_j, 3),
            energy_j_reason=self.energy_reason,
            device=self.device,
        )


def winners(figures: Sequence[PathFigures]) -> tuple[str, ...]:
    """The paths with the lowest median TTFT, ties included; none where nothing was answered."""
    medians = {one.path: one.ttft_ms.p50 for one in figures if one.ttft_ms.p50 is not None}
    if not medians:
        return ()
    best = min(medians.values())
    return tuple(path for path, median in medians.items() if median <= max(best * (1 + TIE_SHARE), best + TIE_MS))


def outputs_equal(paths: Iterable[Iterable[RequestResult]]) -> bool:
    """Whether every path gave every request of the same name the same tokens, and the same logits of the first, bit for bit."""
    by_path = [{result.name: result for result in results} for results in paths]
    first = by_path[0]
    return all(
        other.keys() == first.keys() and all(_is_equal(first[name], other[name]) for name in first) for other in by_path[1:]
    )


def _is_equal(one: RequestResult, other: RequestResult) -> bool:
    """Whether two answers are the same bits; an answer that did not come is equal to none."""
    if one.first_logits is None or other.first_logits is None:
        return False
    return one.output == other.output and one.first_logits.tobytes() == other.first_logits.tobytes()


def median_ms(results: Iterable[RequestResult]) -> float | None:
    """The median TTFT; None where nothing was answered."""
    times_ns = [result.ttft_ns for result in results if result.ttft_ns is not None]
    return round(float(np.median(times_ns)) / _NS_PER_MS, 3) if times_ns else None
