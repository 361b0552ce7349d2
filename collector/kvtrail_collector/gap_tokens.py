"""Which steps gave which request a token: the gaps between tokens of all requests, three small numbers each (LEDGER §2)."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_rows import NO_INT, IdArray, IntArray
from kvtrail_collector.facts_steps import StepColumns
from kvtrail_collector.ledger_axis import distinct, expanded

SmallArray = np.ndarray[tuple[int], np.dtype[np.int32]]
_NEVER: Final = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class Gaps:
    """Each gap: whose, and the places of the steps that gave the token before it and the one that ends it.

    Requests and steps by their places in a recording; times are the ends of the steps. Twelve bytes a gap.
    """

    request: SmallArray
    before: SmallArray
    step: SmallArray

    def __len__(self) -> int:
        """How many."""
        return len(self.request)

    def start_ns(self, steps: StepColumns) -> IntArray:
        """When each gap began."""
        return steps.end_ns[self.before]

    def end_ns(self, steps: StepColumns) -> IntArray:
        """When each gap ended."""
        return steps.end_ns[self.step]


def gaps_of(recording: Recording) -> Gaps:
    """The gaps between tokens, by request and time. Pure; about 0.1 µs a gap.

    A request gets a token of the step of its first token, and of every finished step from joining to leaving the decode,
    unless told that it gave none, or more.
    """
    found = [_of_stream(recording, index) for index in range(len(recording.rows.streams))]
    request = np.concatenate([each[0] for each in found]) if found else np.zeros(0, dtype=np.int32)
    step = np.concatenate([each[1] for each in found]) if found else np.zeros(0, dtype=np.int32)
    same = request[1:] == request[:-1]
    return Gaps(request[1:][same], step[:-1][same], step[1:][same])


def _of_stream(recording: Recording, index: int) -> tuple[SmallArray, SmallArray]:
    """Pairs of a request and a step of one stream that gave it a token, by request and time."""
    steps = recording.steps
    ended = np.flatnonzero((steps.stream == index) & (steps.end_ns != NO_INT))
    ended = ended[np.argsort(steps.end_ns[ended], kind="stable")]
    finder = _Finder(recording, index, steps.step[ended], steps.end_ns[ended])
    keys = finder.given()
    width = np.int64(max(len(ended), 1))
    places = ended[keys % width] if len(ended) else keys
    return (keys // width).astype(np.int32), places.astype(np.int32)


class _Finder:
    """Finds tokens of one stream, by the places of its finished steps in the order of their ends. Used once."""

    def __init__(self, recording: Recording, index: int, step: IdArray, end_ns: IntArray) -> None:
        self.recording, self.index = recording, index
        self.end_ns, self.width = end_ns, np.int64(max(len(step), 1))
        self.by_id = np.argsort(step, kind="stable")
        self.ids = step[self.by_id]

    def given(self) -> IntArray:
        """Keys of pairs, request × width + step, in order, each once."""
        if not len(self.end_ns):
            return np.zeros(0, dtype=np.int64)
        emitted_by, emitted, tokens = self._told(Kind.TOKENS_EMITTED)
        first_by, first, _ = self._told(Kind.REQUEST_FIRST_TOKEN)
        joined = self._joined()
        gave, none = tokens > 0, tokens == 0
        keys = distinct(np.concatenate([first_by * self.width + first, joined, emitted_by[gave] * self.width + emitted[gave]]))
        taken = distinct(emitted_by[none] * self.width + emitted[none])
        return keys[~np.isin(keys, taken)] if len(taken) else keys

    def _told(self, kind: Kind) -> tuple[IntArray, IntArray, IntArray]:
        """Rows of a kind that name a finished step: request, step and tokens."""
        request, step, places = self._rows(kind)
        return request[step >= 0], step[step >= 0], self.recording.rows.ints["tokens"][places][step >= 0]

    def _rows(self, kind: Kind) -> tuple[IntArray, IntArray, IntArray]:
        """Rows of a kind of requests that arrived, by request: request, place of the step (-1: not finished), row."""
        rows = self.recording.rows
        places = np.flatnonzero((rows.kind == kind) & (rows.stream == self.index))
        request = self.recording.columns.index.find(rows.stream[places], rows.ids["req"][places])
        order = np.argsort(request, kind="stable")
        order = order[np.searchsorted(request[order], 0) :]
        step = rows.ids["step"][places[order]]
        at = np.minimum(np.searchsorted(self.ids, step), len(self.ids) - 1)
        return request[order], np.where(self.ids[at] == step, self.by_id[at], -1), places[order]

    def _joined(self) -> IntArray:
        """Pairs of a request and each step from one that it joined the decode in to the one that it left it in."""
        request, joined, _ = self._rows(Kind.DECODE_JOINED)
        last = self._left(request)
        until = np.where(last >= 0, self.end_ns[np.maximum(last, 0)], self.end_ns[-1])
        low = np.searchsorted(self.end_ns, self.end_ns[np.maximum(joined, 0)], side="left")
        counts = np.maximum(np.searchsorted(self.end_ns, until, side="right") - low, 0)
        of, step = expanded(low, np.where(joined >= 0, counts, 0))
        return np.asarray(request[of] * self.width + step)

    def _left(self, request: IntArray) -> IntArray:
        """The step in which each joining ended: the n-th of a request with the n-th leaving; -1 where it never did."""
        left_by, left, _ = self._rows(Kind.DECODE_LEFT)
        width = np.int64(len(request) + len(left_by) + 1)
        have, want = left_by * width + _numbered(left_by), request * width + _numbered(request)
        at = np.searchsorted(have, want)
        have, left = np.append(have, -1), np.append(left, -1)
        return np.where(have[at] == want, left[at], -1)


def _numbered(request: IntArray) -> IntArray:
    """The number of each row among those of its request, which stand together."""
    first = np.searchsorted(request, request, side="left")
    return np.asarray(np.arange(len(request)) - first)
