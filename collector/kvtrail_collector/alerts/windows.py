"""What was observed lately, in seconds of wall time: bounded, whatever comes in. Used by the thread `kvtrail-alerts` alone."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kvtrail_collector.alerts.rules import LONGEST_WINDOW_S

MOST_SUBJECTS: Final = 4_096
STALE_S: Final = 30
"""A sample counts for so long."""

_BINS: Final = 160
_A_DOUBLING: Final = 5
"""Bins of a spread: five a doubling from a microsecond on, so a quantile is true to 15 %."""
_MOST_PARTS: Final = 1_024

Ints = npt.NDArray[np.int64]


class Subject(NamedTuple):
    """Of whom a figure is: an engine's tier, or (empty) the engine as a whole."""

    engine: str
    measure: str
    tier: str


class Window:
    """Sums by second, for as long as any rule looks back. A row of numbers a second, of a width that does not change."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: dict[int, npt.NDArray[np.float64]] = {}
        self.newest_s = 0

    def add(self, second: int, row: npt.NDArray[np.float64], now_s: int) -> None:
        """Add to a second. What is older than any window is left out; what is of the future counts as now."""
        at = min(second, now_s)
        if at <= now_s - LONGEST_WINDOW_S:
            return
        self._rows[at] = row + self._rows[at] if at in self._rows else row
        self.newest_s = max(self.newest_s, at)
        if len(self._rows) > LONGEST_WINDOW_S + 1:
            self._rows = {each: kept for each, kept in self._rows.items() if each > now_s - LONGEST_WINDOW_S}

    def total(self, now_s: int, window_s: int) -> npt.NDArray[np.float64]:
        """The sum over the window that ends now."""
        rows = [row for second, row in self._rows.items() if now_s - window_s < second <= now_s]
        return np.sum(rows, axis=0) if rows else np.zeros(self._width)


class Sample(NamedTuple):
    """The last sample of one part of a subject."""

    second: int
    value: float


class Gauge:
    """The last sample of each part (a rank, a tenant) of a subject."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], Sample] = {}

    def set(self, part: tuple[int, int], sample: Sample) -> None:
        """Take a sample, unless a later one is there. More parts than the bound push out the oldest."""
        known = self._parts.pop(part, None)
        self._parts[part] = sample if known is None or sample.second >= known.second else known
        if len(self._parts) > _MOST_PARTS:
            del self._parts[next(iter(self._parts))]

    @property
    def newest_s(self) -> int:
        """When the last sample was taken."""
        return max((sample.second for sample in self._parts.values()), default=0)

    def worst(self, now_s: int, *, is_high_bad: bool) -> float | None:
        """The worst of the samples that are not stale; None where there is none."""
        fresh = [sample.value for sample in self._parts.values() if now_s - sample.second <= STALE_S]
        if not fresh:
            return None
        return max(fresh) if is_high_bad else min(fresh)


class Windows:
    """All subjects. A subject over the bound is not taken in, and counted."""

    def __init__(self) -> None:
        self._windows: dict[Subject, Window] = {}
        self._gauges: dict[Subject, Gauge] = {}
        self.refused = 0

    def subjects(self, measure: str) -> list[Subject]:
        """Of whom there are observations of a measure."""
        return [subject for subject in (*self._windows, *self._gauges) if subject.measure == measure]

    def idle(self, now_s: int) -> list[Subject]:
        """Of whom nothing was observed for as long as any rule looks back."""
        since_s = now_s - LONGEST_WINDOW_S
        counted = [subject for subject, window in self._windows.items() if window.newest_s <= since_s]
        return counted + [subject for subject, gauge in self._gauges.items() if gauge.newest_s <= since_s]

    def drop(self, subject: Subject) -> None:
        """Forget a subject: its place is another's."""
        self._windows.pop(subject, None)
        self._gauges.pop(subject, None)

    def add_counts(self, subject: Subject, seconds: Ints, now_s: int, *weights: npt.NDArray[np.float64]) -> None:
        """Add weights to their seconds, column by column."""
        if not seconds.size:
            return
        window = self._window(subject, len(weights))
        for second in np.unique(seconds).tolist():
            if window is not None:
                window.add(second, np.array([column[seconds == second].sum() for column in weights], dtype=float), now_s)

    def add_spread(self, subject: Subject, seconds: Ints, durations_ns: Ints, now_s: int) -> None:
        """Add durations to the spreads of their seconds."""
        bins = np.clip(_A_DOUBLING * np.log2(np.maximum(durations_ns, 1_000) / 1_000), 0, _BINS - 1).astype(np.int64)
        window = self._window(subject, _BINS)
        for second in np.unique(seconds).tolist():
            if window is not None:
                window.add(second, np.bincount(bins[seconds == second], minlength=_BINS).astype(float), now_s)

    def set_latest(self, subject: Subject, part: tuple[int, int], sample: Sample) -> None:
        """Take a sample."""
        if subject not in self._gauges and self._is_full():
            return
        self._gauges.setdefault(subject, Gauge()).set(part, sample)

    def count(self, subject: Subject, now_s: int, window_s: int) -> float:
        """What was counted in a window."""
        return float(self._total(subject, now_s, window_s, 1)[0])

    def share(self, subject: Subject, now_s: int, window_s: int, least: int) -> float | None:
        """The share of the first column in the second; None where the second is less than `least`."""
        part, whole = self._total(subject, now_s, window_s, 2).tolist()
        return part / whole if whole >= least else None

    def quantile_ns(self, subject: Subject, now_s: int, window_s: int, rank: float, least: int) -> float | None:
        """A quantile of a spread; None with fewer than `least`."""
        counts = self._total(subject, now_s, window_s, _BINS)
        if counts.sum() < least:
            return None
        place = int(np.searchsorted(np.cumsum(counts), math.ceil(rank * counts.sum())))
        return float(1_000 * 2.0 ** ((place + 0.5) / _A_DOUBLING))

    def latest(self, subject: Subject, now_s: int, *, is_high_bad: bool) -> float | None:
        """The worst of the last samples."""
        gauge = self._gauges.get(subject)
        return None if gauge is None else gauge.worst(now_s, is_high_bad=is_high_bad)

    def _window(self, subject: Subject, width: int) -> Window | None:
        """The window of a subject, made where there is room for one more."""
        if subject not in self._windows:
            if self._is_full():
                return None
            self._windows[subject] = Window(width)
        return self._windows[subject]

    def _is_full(self) -> bool:
        """Whether no more subjects are taken in."""
        is_full = len(self._windows) + len(self._gauges) >= MOST_SUBJECTS
        self.refused += is_full
        return is_full

    def _total(self, subject: Subject, now_s: int, window_s: int, width: int) -> npt.NDArray[np.float64]:
        """A window's sum, zeros where there is none."""
        window = self._windows.get(subject)
        return np.zeros(width) if window is None else window.total(now_s, window_s)
