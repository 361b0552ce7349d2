"""The three quantiles that stand beside every run."""

from collections.abc import Sequence

import msgspec
import numpy as np


class Quantiles(msgspec.Struct, frozen=True):
    """Milliseconds; None where there is nothing to count."""

    p50: float | None
    p95: float | None
    p99: float | None


def quantiles_ms(values_ns: Sequence[int]) -> Quantiles:
    """The quantiles of durations in nanoseconds."""
    if not values_ns:
        return Quantiles(None, None, None)
    p50, p95, p99 = (float(q) / 1e6 for q in np.quantile(np.asarray(values_ns), [0.5, 0.95, 0.99]))
    return Quantiles(round(p50, 3), round(p95, 3), round(p99, 3))
