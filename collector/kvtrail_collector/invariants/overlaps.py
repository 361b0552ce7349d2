"""`DST_CONFLICT` as events come in: which transfers into a place have begun, and until when it was last written."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.key_table import NOWHERE, KeyTable
from kvtrail_collector.invariants.rows import ABSENT, NO_ID, Ids, Ints, Rows, key_of

_STARTS: Final = (Kind.SWAP_OUT_STARTED, Kind.SWAP_IN_STARTED)
_ENDS: Final = (Kind.SWAP_OUT_WRITTEN, Kind.SWAP_IN_LOADED)


class _Spans(NamedTuple):
    """Transfers into places that are complete, in the order of the rows that say so."""

    rows: Ints
    place_keys: Ids
    start_ns: Ints
    end_ns: Ints


class Overlaps:
    """Holds the transfers under way, and for each place the end of the last one."""

    codes = ("DST_CONFLICT",)

    def __init__(self, places: int) -> None:
        self._running = KeyTable(places)  # by place and op: when it started
        self._written = KeyTable(places)  # by place: when the last transfer into it ended

    @property
    def is_sure(self) -> bool:
        """Whether nothing was forgotten."""
        return not self._running.forgotten and not self._written.forgotten

    def look(self, rows: Rows) -> list[Found]:
        """Transfers into a place that began before another into it had ended."""
        self._begin(rows, self._with_place(rows, rows.of(*_STARTS)))
        spans = self._end(rows, self._with_place(rows, rows.of(*_ENDS)))
        if not len(spans.rows):
            return []
        held = self._written.put(spans.place_keys)
        often = self._written.repeated(held)
        before = self._written.values(0, held)
        self._written.set_values(0, held, np.maximum(before, spans.end_ns))
        self._follow(spans, held, before, np.flatnonzero(often))
        bad = np.sort(spans.rows[(before != 0) & (before > spans.start_ns)])
        return found_at(self.codes[0], rows, bad, rows.numbers("dst")[bad])

    def _follow(self, spans: _Spans, held: Ints, before: Ints, often: Ints) -> None:
        """Of places that are written several times in these rows: the end of the transfer before each."""
        order = often[np.lexsort((spans.end_ns[often], held[often]))]
        ends, places = spans.end_ns[order], held[order]
        same = np.concatenate([[False], places[1:] == places[:-1]])[: len(order)]
        before[order[same]] = ends[:-1][same[1:]]
        self._written.set_values(0, places, ends)

    def _with_place(self, rows: Rows, places: Ints) -> Ints:
        """Those rows that say which op wrote where."""
        return np.asarray(places[(rows.numbers("slot")[places] != ABSENT) & (rows.ids("op")[places] != NO_ID)])

    def _begin(self, rows: Rows, starts: Ints) -> None:
        """Take in what begins; of one that begins twice, the first time holds."""
        held = self._running.put(self._op_keys(rows, starts))
        order = np.arange(len(starts))[::-1]
        fresh = order[self._running.values(0, held[order]) == 0]
        self._running.set_values(0, held[fresh], rows.t_ns[starts[fresh]])

    def _end(self, rows: Rows, ends: Ints) -> _Spans:
        """The transfers that end here, of which the beginning is known; they run no more."""
        held = self._running.find(self._op_keys(rows, ends))
        known = np.flatnonzero(held != NOWHERE)
        ends, held = ends[known], held[known]
        start_ns = self._running.values(0, held)
        self._running.remove(held)
        return _Spans(ends, key_of(rows.numbers("dst")[ends], rows.numbers("slot")[ends]), start_ns, rows.t_ns[ends])

    def _op_keys(self, rows: Rows, places: Ints) -> Ids:
        """The key of a transfer into one place."""
        return key_of(rows.numbers("dst")[places], rows.numbers("slot")[places], rows.ids("op")[places])
