"""How long the stretches are that a bootstrap draws: as long as slow requests keep company.

The length that estimates a variance best is that of Politis and White (Automatic block-length selection for the dependent
bootstrap, 2004) with the correction of Patton, Politis and White (2009), for circular blocks. Its series is what moves a tail
mean: how far requests lie beyond the quantile, added up over short cells of time.
"""

from fractions import Fraction
from math import ceil, log10, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.population import Population

FloatArray = NDArray[np.float64]

BLOCK_IN_MEDIANS: Final = 5
MIN_BLOCKS: Final = 5
SERIES_CELLS: Final = 400
_FEWEST_LAGS: Final = 5
_CLIP_QUANTILE: Final = 0.98


def block_ns(population: Population, p: Fraction) -> int:
    """How much time is drawn together: five median latencies, or as long as slow ones keep company, at most a fifth of all."""
    span = span_ns(population)
    least = BLOCK_IN_MEDIANS * float(np.median(population.latency_ns))
    series, cell_ns = _beyond(population, p, least)
    return int(min(ceil(max(least, best_length(series) * cell_ns)), max(span // MIN_BLOCKS, 1)))


def span_ns(population: Population) -> int:
    """The time from the first arrival to the last."""
    return int(population.arrived_ns.max() - population.arrived_ns.min()) + 1


def _beyond(population: Population, p: Fraction, least_ns: float) -> tuple[FloatArray, float]:
    """How far requests lie beyond the quantile, by cells of time, and how long a cell is; a single monster counts less."""
    span = span_ns(population)
    cells = int(min(max(span / max(least_ns, 1.0), 2 * MIN_BLOCKS), SERIES_CELLS))
    quantile, most = np.quantile(population.latency_ns, [float(p), 1 - float(1 - p) * (1 - _CLIP_QUANTILE)])
    beyond = np.clip(population.latency_ns, quantile, most) - quantile
    cell: IntArray = (population.arrived_ns - int(population.arrived_ns.min())) * cells // span
    return np.bincount(cell, weights=beyond, minlength=cells).astype(np.float64), span / cells


def best_length(series: FloatArray) -> float:
    """The length of circular blocks, in members of the series, that estimates the variance of its mean best; at least 1."""
    size = len(series)
    covariance = _autocovariance(series)
    if covariance[0] <= 0:
        return 1.0
    lags = min(2 * _last_lag(covariance / covariance[0], size), len(covariance) - 1)
    lag = np.arange(1, lags + 1)
    flat_top = np.clip(2 * (1 - lag / max(lags, 1)), 0.0, 1.0)
    own = flat_top * covariance[1 : lags + 1]
    spectrum = covariance[0] + 2 * own.sum()
    slope = 2 * (lag * own).sum()
    if spectrum <= 0:
        return 1.0
    return float(max((2 * slope**2 / (4 / 3 * spectrum**2)) ** (1 / 3) * size ** (1 / 3), 1.0))


def correlation_length(series: FloatArray) -> float:
    """Over how many members a series keeps company: the sum of its autocorrelations until they are no more than chance."""
    covariance = _autocovariance(series)
    if covariance[0] <= 0:
        return 1.0
    correlation = covariance / covariance[0]
    return float(max(1 + 2 * correlation[1 : _last_lag(correlation, len(series)) + 1].sum(), 1.0))


def _autocovariance(series: FloatArray) -> FloatArray:
    """Autocovariances up to a third of the length."""
    centred = series - series.mean()
    spectrum = np.fft.rfft(centred, 2 * len(series))
    full = np.fft.irfft(np.abs(spectrum) ** 2, 2 * len(series))
    return np.asarray(full[: len(series) // 3 + 1] / len(series))


def _last_lag(correlation: FloatArray, size: int) -> int:
    """The lag after which several in a row are no larger than chance makes them."""
    run = max(_FEWEST_LAGS, ceil(sqrt(log10(size))))
    large = np.abs(correlation[1:]) >= 2 * sqrt(log10(size) / size)
    for lag in range(len(large)):
        if not large[lag : lag + run].any():
            return lag
    return len(large)
