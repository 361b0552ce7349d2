"""What is given to whom: amounts collected by request and label, layer after layer."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_axis import Axis, Cover
from kvtrail_collector.ledger_codes import CODES, UNATTRIBUTED_CODE, label_of
from kvtrail_collector.ledger_parts import ORDER, Label


@dataclass(frozen=True, slots=True)
class Amounts:
    """A table with one row a request and one column a label; `labels` are in the order of tables."""

    codes: IntArray
    ns: IntArray

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels of the columns."""
        return tuple(label_of(code) for code in self.codes.tolist())


class Tally:
    """Collects (request, label, ns), then adds them up. Used by one thread."""

    def __init__(self) -> None:
        self._found: list[tuple[IntArray, IntArray, IntArray]] = []

    def add(self, request: IntArray, code: IntArray | int, ns: IntArray) -> None:
        """Give so much of each request to a label. What has two dimensions is one row a request."""
        if ns.ndim > 1:
            request = np.repeat(request, ns.shape[1])
        codes = np.broadcast_to(np.asarray(code, dtype=np.int64), ns.shape)
        real = np.flatnonzero(ns.reshape(-1))
        self._found.append((request[real], codes.reshape(-1)[real], ns.reshape(-1)[real]))

    def table(self, requests: int) -> Amounts:
        """The sums."""
        present = np.zeros(CODES, dtype=np.bool_)
        for _, code, _ in self._found:
            present[code] = True
        codes = np.array(sorted(np.flatnonzero(present).tolist(), key=_place), dtype=np.int64)
        column = np.zeros(CODES, dtype=np.int64)
        column[codes] = np.arange(len(codes))
        sums = np.zeros(requests * len(codes), dtype=np.int64)
        for request, code, ns in self._found:
            np.add.at(sums, request * len(codes) + column[code], ns)
        return Amounts(codes, sums.reshape(requests, len(codes)))


def _place(code: int) -> tuple[int, str, str]:
    """Where a label stands in tables."""
    label = label_of(code)
    return ORDER[label.component], label.tier or "", label.reason or ""


class Canvas:
    """The axis, and what of it somebody owns already. Each layer that is painted is stronger than all that follow.

    What paints goes to the shown ledger; what covers anything, painted or not, is announced, and the difference is the
    hidden one.
    """

    def __init__(self, axis: Axis) -> None:
        self.axis, self.cover = axis, Cover.nothing()
        self.shown, self.covered = Tally(), Tally()

    def paint(self, request: IntArray, starts: IntArray, ends: IntArray, code: IntArray | int) -> IntArray:
        """Give what is free of disjoint intervals to labels, and return how much that was."""
        ns = self.cover.free(starts, ends)
        self.shown.add(request, code, ns)
        self.cover = self.cover.plus(starts, ends)
        return ns

    def announce(self, request: IntArray, code: IntArray | int, ns: IntArray) -> None:
        """Count what covers some of the interval, or, negative, what of that came to own it. Holes are not hidden work."""
        codes = np.broadcast_to(np.asarray(code, dtype=np.int64), ns.shape)
        self.covered.add(request, codes, np.where(codes == _UNKNOWN, 0, ns))


_UNKNOWN: Final = UNATTRIBUTED_CODE
