"""All slow stretches of a run, where `window_scan` looks for one (LEDGER §5, step 8).

Of two spikes each makes the other look like chance: what is shuffled holds both. So stretches are proposed first, piece by
piece of the time between those proposed before, and then each is judged in a run from which the others are cut out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.facts_rows import IntArray, Interval
from kvtrail_collector.window_scan import Spell, find_spells

MOST_SPIKES: Final = 5
MOST_PIECES: Final = 7
SURE_P_VALUE: Final = 0.005
_HOPELESS_P_VALUE: Final = 0.5
_QUANTILE: Final = 0.95
_FROM_RATIO: Final = 1.1
_FROM_NS: Final = 5_000_000


@dataclass(frozen=True, slots=True)
class _Line:
    """Arrivals in order, and what each took."""

    arrived_ns: IntArray
    latency_ns: IntArray

    def part(self, low: int, high: int) -> _Line:
        """Some that follow each other."""
        return _Line(self.arrived_ns[low:high], self.latency_ns[low:high])

    def places(self, stretch: Interval) -> tuple[int, int]:
        """Where a stretch of time begins and ends."""
        low, high = np.searchsorted(self.arrived_ns, stretch).tolist()
        return low, high


def find_spikes(arrived_ns: IntArray, latency_ns: IntArray, *, seed: int) -> list[Interval]:
    """At most `MOST_SPIKES` slow stretches, in the order of time. Pure; a dozen searches of a tenth of a second at most.

    Each is at least a tenth and 5 ms slower at P95 than what is left without all of them.
    """
    run = _Line(arrived_ns, latency_ns)
    proposed = _proposed(run, seed)
    return sorted(one for one in proposed if _is_sure(run, one, [other for other in proposed if other != one], seed))


def _proposed(run: _Line, seed: int) -> list[Interval]:
    """The costliest stretch of the run, then of what is left on both sides of it, the longest piece first."""
    pieces, found = [run], list[Interval]()
    for _ in range(MOST_PIECES):
        if not pieces or len(found) == MOST_SPIKES:
            break
        piece = pieces.pop(max(range(len(pieces)), key=lambda place: len(pieces[place].arrived_ns)))
        spell = _costliest(find_spells(piece.arrived_ns, piece.latency_ns, seed=seed))
        if spell is not None:
            found.append((spell.start_ns, spell.end_ns))
            low, high = piece.places(found[-1])
            pieces += [piece.part(0, low), piece.part(high, len(piece.arrived_ns))]
    return found


def _costliest(spells: Sequence[Spell]) -> Spell | None:
    """The costliest that is no chance, else the costliest; None where chance does as well every other time."""
    hopeful = [spell for spell in spells if spell.p_value <= _HOPELESS_P_VALUE]
    return next((spell for spell in hopeful if spell.p_value <= SURE_P_VALUE), next(iter(hopeful), None))


def _is_sure(run: _Line, one: Interval, others: Sequence[Interval], seed: int) -> bool:
    """Whether a stretch is slower than chance makes one, and by enough, in a run without the others."""
    rest, own = _without(run, one, others)
    low, high = rest.places(own)
    inside, outside = rest.latency_ns[low:high], np.concatenate([rest.latency_ns[:low], rest.latency_ns[high:]])
    if not len(inside) or not len(outside):
        return False
    here, there = (float(np.quantile(part, _QUANTILE)) for part in (inside, outside))
    if here < _FROM_RATIO * there or here - there < _FROM_NS:
        return False
    spells = find_spells(rest.arrived_ns, rest.latency_ns, seed=seed)
    return any(spell.p_value <= SURE_P_VALUE and _meet((spell.start_ns, spell.end_ns), own) for spell in spells)


def _without(run: _Line, one: Interval, others: Sequence[Interval]) -> tuple[_Line, Interval]:
    """The run with some stretches cut out and the time closed up; and where another lies then."""
    kept, shift = np.ones(len(run.arrived_ns), dtype=np.bool_), np.zeros(len(run.arrived_ns), dtype=np.int64)
    moved = 0
    for start, end in others:
        low, high = run.places((start, end))
        kept[low:high] = False
        shift[high:] += end - start
        moved += end - start if end <= one[0] else 0
    return _Line((run.arrived_ns - shift)[kept], run.latency_ns[kept]), (one[0] - moved, one[1] - moved)


def _meet(one: Interval, other: Interval) -> bool:
    """Whether two stretches have time in common."""
    return one[0] < other[1] and other[0] < one[1]
