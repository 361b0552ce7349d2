"""Which stretches of time each resample draws: moving blocks over cells of time (LEDGER §5, step 6).

Moving blocks are those of Künsch (The jackknife and the bootstrap for general stationary observations, 1989); they wrap around
the end (Politis and Romano, A circular block-resampling procedure, 1992), so that edges are drawn as often as the middle.
"""

from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtrail_collector.bootstrap_block import span_ns
from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.population import Population

FloatArray = NDArray[np.float64]

CELLS_A_BLOCK: Final = 8
MOST_CELLS: Final = 1_000
MOST_TAIL_ROWS: Final = 2_000


def cells_for(population: Population, block_ns: int) -> int:
    """Into how many cells of equal time a population is cut, an eighth of a block each; blocks may get longer than asked."""
    return min(max(round(span_ns(population) / block_ns * CELLS_A_BLOCK), CELLS_A_BLOCK), MOST_CELLS)


def cell_of(population: Population, cells: int) -> IntArray:
    """The cell of time in which each request arrived."""
    start = int(population.arrived_ns.min())
    # In floating point, as nanoseconds times cells may exceed what 64 bits hold.
    share = (population.arrived_ns - start) / span_ns(population)
    return np.asarray(np.minimum((share * cells).astype(np.int64), cells - 1))


def times_drawn(cells: int, drawn: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """How often each cell is in each resample of `drawn` cells, taken in blocks from all of `cells`."""
    blocks = ceil(drawn / CELLS_A_BLOCK)
    starts = rng.integers(0, cells, size=(resamples, blocks))
    place = np.arange(resamples)[:, np.newaxis] * cells + starts
    begun = np.bincount(place.ravel(), minlength=resamples * cells).reshape(resamples, cells)
    wrapped = np.cumsum(np.hstack([np.zeros((resamples, 1)), begun[:, cells - CELLS_A_BLOCK + 1 :], begun]), axis=1)
    return np.asarray(wrapped[:, CELLS_A_BLOCK:] - wrapped[:, :-CELLS_A_BLOCK], dtype=np.float64)


def thinned(population: Population, p: Fraction) -> IntArray:
    """The requests that are drawn from: all, or every k-th by arrival, so that the tail has not too many."""
    step = ceil(len(population) * float(1 - p) / MOST_TAIL_ROWS)
    order = np.lexsort((population.latency_ns, population.arrived_ns)) if step > 1 else np.arange(len(population))
    return np.asarray(order[::step])
