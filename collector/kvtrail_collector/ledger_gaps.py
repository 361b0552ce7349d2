"""The gaps between the tokens of one request, and where their time went (LEDGER §2)."""

from typing import Final

import msgspec
import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts import RequestFacts, State
from kvtrail_collector.facts_build import Recording
from kvtrail_collector.facts_rows import NO_INT, IntArray
from kvtrail_collector.facts_steps import StepColumns
from kvtrail_collector.ledger import Painter
from kvtrail_collector.ledger_parts import Component, Label, Part, parts_of

_PURE: Final = Label(Component.DECODE_STEP, None, "pure")
_WITH_PREFILL: Final = Label(Component.DECODE_STEP, None, "with_prefill")


class Gap(msgspec.Struct, frozen=True):
    """The time from one token to the next, which `step` gave; parts add up to `ns`."""

    step: int
    ns: int
    parts: tuple[Part, ...]


def slowest_gaps(recording: Recording, facts: RequestFacts, most: int = 5) -> tuple[Gap, ...]:
    """The longest gaps of a request, longest first."""
    steps = recording.steps.of_stream(stream_index(recording, facts))
    tokens = _token_steps(recording, facts, steps)
    ends = steps.end_ns[tokens].tolist()
    spans = sorted(zip(ends, ends[1:], tokens.tolist()[1:], strict=False), key=lambda span: (span[0] - span[1], span[0]))
    return tuple(_gap(facts, steps, *span) for span in spans[:most])


def stream_index(recording: Recording, facts: RequestFacts) -> int:
    """The index of the stream that a request belongs to."""
    return recording.rows.streams.index(facts.timeline.stream)


def _gap(facts: RequestFacts, steps: StepColumns, start_ns: int, end_ns: int, token: int) -> Gap:
    """Account for one gap: holes, explicit waits and prefill as ever, then states, then steps, then nothing at all."""
    painter = Painter(facts, start_ns, end_ns)
    painter.cover()
    painter.paint_holes()
    painter.paint_waits()
    painter.canvas.paint_within([(start_ns, end_ns)], painter.chunks, painter.covered)
    painter.spells = [spell for spell in painter.spells if spell.state is not State.ADMITTED]
    painter.paint_states()
    for place in np.flatnonzero((steps.start_ns < end_ns) & (steps.end_ns > start_ns) & (steps.start_ns != NO_INT)).tolist():
        label = _WITH_PREFILL if steps.prefill_tokens[place] > 0 else _PURE
        painter.canvas.paint(int(steps.start_ns[place]), int(steps.end_ns[place]), label)
    painter.canvas.paint(start_ns, end_ns, Label(Component.STALLED))
    return Gap(int(steps.step[token]), end_ns - start_ns, parts_of(painter.canvas.amounts))


def _token_steps(recording: Recording, facts: RequestFacts, steps: StepColumns) -> IntArray:
    """The places of the steps that gave the request a token, in order of time.

    The step of the first token, and every finished step from joining to leaving the decode, unless told that it gave
    none.
    """
    rows, stream = recording.rows, stream_index(recording, facts)
    own = np.flatnonzero((rows.stream == stream) & (rows.ids["req"] == np.uint64(facts.request)))
    by_kind = {kind: own[rows.kind[own] == kind] for kind in _KINDS}
    given = np.isin(steps.step, rows.ids["step"][by_kind[Kind.REQUEST_FIRST_TOKEN]])
    lefts = rows.ids["step"][by_kind[Kind.DECODE_LEFT]].tolist()
    for place, joined in enumerate(rows.ids["step"][by_kind[Kind.DECODE_JOINED]].tolist()):
        given |= _between(steps, joined, lefts[place] if place < len(lefts) else None)
    emitted = by_kind[Kind.TOKENS_EMITTED]
    given |= np.isin(steps.step, rows.ids["step"][emitted[rows.ints["tokens"][emitted] > 0]])
    given &= ~np.isin(steps.step, rows.ids["step"][emitted[rows.ints["tokens"][emitted] == 0]])
    places = np.flatnonzero(given & (steps.end_ns != NO_INT))
    return places[np.argsort(steps.end_ns[places], kind="stable")]


_KINDS: Final = (Kind.REQUEST_FIRST_TOKEN, Kind.DECODE_JOINED, Kind.DECODE_LEFT, Kind.TOKENS_EMITTED)


def _between(steps: StepColumns, first: int, last: int | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The steps from one to another, both included, by the time at which they ended; to the end where it never left."""
    start = steps.end_ns[steps.step == np.uint64(first)]
    end = steps.end_ns[steps.step == np.uint64(last)] if last is not None else start[:0]
    if not len(start):
        return np.zeros(len(steps.step), dtype=np.bool_)
    until = int(end[0]) if len(end) else int(steps.end_ns.max())
    return np.asarray((steps.end_ns >= start[0]) & (steps.end_ns <= until))
