"""The ledger of one request: every nanosecond from arrival to first token has exactly one owner (LEDGER §1).

The rules are applied as layers of paint, strongest first: holes, explicit waits, prefill, the request's own loads,
lookups, and last its state, which has no gap. So the parts add up by construction, and the order of rows cannot matter.
"""

from collections.abc import Iterable
from itertools import pairwise

import msgspec
from kvtrail_schema.enums import Reason
from kvtrail_schema.identity import RequestId

from kvtrail_collector.facts import Direction, EndKind, Op, OpEnd, RequestFacts, State, Wait
from kvtrail_collector.facts_rows import Interval
from kvtrail_collector.ledger_canvas import Canvas
from kvtrail_collector.ledger_layout import (
    FOREVER_NS,
    Segment,
    Spell,
    chunk_segments,
    ends_last_first,
    op_segments,
    spells,
    wait_label,
    waiting_segments,
)
from kvtrail_collector.ledger_parts import UNATTRIBUTED, Component, Label, Part, parts_of


class Ledger(msgspec.Struct, frozen=True):
    """Where the time of one request went: `parts` add up to `end_ns - start_ns`, `hidden` is what they covered up."""

    request: RequestId
    start_ns: int
    end_ns: int
    end: EndKind
    parts: tuple[Part, ...]
    hidden: tuple[Part, ...]

    @property
    def ns(self) -> int:
        """Time to first token, or the time so far of a request that never got there."""
        return self.end_ns - self.start_ns


def ledger_of(facts: RequestFacts) -> Ledger:
    """Account for one request. Pure; about 0.1 ms; parts add up exactly, none is negative."""
    start, end = facts.arrived_ns, facts.end_ns
    painter = Painter(facts, start, end)
    painter.explain()
    parts = parts_of(painter.canvas.amounts)
    assert sum(part.ns for part in parts) == end - start, f"ledger of {facts.request} does not add up"
    return Ledger(facts.request, start, end, facts.end, parts, painter.hidden())


def _touches(op: Op, start_ns: int, end_ns: int) -> bool:
    """Whether an op was under way within an interval."""
    return op.queued_ns < end_ns and (op.closing_ns is None or op.closing_ns > start_ns)


class Painter:
    """Applies the rules to one interval of one request. Used once, by one thread."""

    def __init__(self, facts: RequestFacts, start_ns: int, end_ns: int) -> None:
        self.facts, self.start_ns, self.end_ns = facts, start_ns, end_ns
        self.canvas = Canvas(start_ns, end_ns)
        self.spells = spells(facts.states, start_ns, end_ns)
        self.ops = ends_last_first(op for op in facts.ops if _touches(op, start_ns, end_ns))
        shared = [op for op in facts.shared_ops if _touches(op, start_ns, end_ns)]
        self.segments = {op.op: self._op_segments(op) for op in (*self.ops, *shared)}
        self.chunks = chunk_segments(facts.chunks)
        self.covered: dict[Label, int] = {}

    def _op_segments(self, op: Op) -> list[Segment]:
        """An op that is still queued when its censored request was last seen has waited in the queue, so far."""
        still_queued = op.end is OpEnd.OPEN and op.started_ns is None and self.facts.censored
        return waiting_segments(op) if still_queued else op_segments(op)

    def explain(self) -> None:
        """Apply the rules of LEDGER §1, strongest first."""
        self.cover()
        self.paint_holes()
        self.paint_waits()
        whole = [(self.start_ns, self.end_ns)]
        self.canvas.paint_within(whole, self.chunks, self.covered)
        self.paint_loads()
        self.canvas.paint_within(whole, self._lookups(), self.covered)
        self.paint_states()

    def cover(self) -> None:
        """Count everything that covers some of the interval; what paints is taken off again, the rest is hidden."""
        own = [segment for segments in self.segments.values() for segment in segments]
        for segment in (*own, *self.chunks, *self._lookups()):
            length = min(segment.end_ns, self.end_ns) - max(segment.start_ns, self.start_ns)
            if length > 0:
                self.covered[segment.label] = self.covered.get(segment.label, 0) + length

    def hidden(self) -> tuple[Part, ...]:
        """What covered the interval and did not come to own it."""
        return parts_of({label: ns for label, ns in self.covered.items() if label is not UNATTRIBUTED})

    def _lookups(self) -> list[Segment]:
        """The lookups as segments."""
        return [Segment(start, end, Label(Component.LOOKUP)) for start, end in self.facts.lookups]

    def paint_holes(self) -> None:
        """Rule 7 first: where rows are missing, what the others say cannot be trusted to be all."""
        for start, end in self.facts.timeline.holes:
            self.canvas.paint(start, end, UNATTRIBUTED)

    def paint_waits(self) -> None:
        """Rule 1: an explicit wait belongs to what was waited for."""
        waits = self.explicit_waits()
        borders = sorted({border for wait in waits for border in wait[:2]})
        for low, high in pairwise(borders):
            named = [wait.op for wait in waits if wait.start_ns <= low and wait.end_ns >= high]
            if named:
                self._paint_wait(low, high, self._waited_for(named))

    def explicit_waits(self) -> list[Wait]:
        """Waits that the engine stated: for copies, and while the scheduler waits for a load."""
        deferred = [Wait(spell.start_ns, spell.end_ns, None) for spell in self.spells if _awaits_load(spell)]
        return [*self.facts.waits, *deferred]

    def _waited_for(self, named: Iterable[int | None]) -> list[Op]:
        """The ops that waits are for: those named, and all loads of the request where one names none."""
        wanted = set(named)
        own = [op for op in self.facts.ops if op.op in wanted or (None in wanted and op.direction is Direction.LOAD)]
        return [*own, *(op for op in self.facts.shared_ops if op.op in wanted)]

    def _paint_wait(self, low: int, high: int, ops: list[Op]) -> None:
        """Give one wait to the ops waited for, and what is left of it to noticing late."""
        for op in ends_last_first(ops):
            self.canvas.paint_within([(low, high)], self.segments.get(op.op, ()), self.covered)
        noticed = min((op.closing_ns for op in ops if op.closing_ns is not None), default=FOREVER_NS)
        self.canvas.paint(low, min(high, noticed), Label(Component.COPY_WAIT))
        self.canvas.paint(max(low, noticed), high, Label(Component.DEFERRED))

    def paint_loads(self) -> None:
        """Rule 3: while admitted and not computing, a request's own load is what holds it. Write-backs hold nobody."""
        region = self._admitted()
        for op in self.ops if region else ():
            if op.direction is Direction.LOAD:
                self.canvas.paint_within(region, self.segments[op.op], self.covered)

    def _admitted(self) -> list[Interval]:
        """When the request was admitted."""
        return [(spell.start_ns, spell.end_ns) for spell in self.spells if spell.state is State.ADMITTED]

    def paint_states(self) -> None:
        """Rules 5 and 6: what is left belongs to the scheduler."""
        for spell in self.spells:
            if spell.state is State.ADMITTED:
                self._paint_idle(spell)
            else:
                self.canvas.paint(spell.start_ns, spell.end_ns, wait_label(spell.reason))

    def _paint_idle(self, spell: Spell) -> None:
        """Admitted with nothing of its own: others had the budget while a step ran, else nothing ran at all."""
        for start, end in self.facts.timeline.unknown:
            self.canvas.paint(max(start, spell.start_ns), min(end, spell.end_ns), UNATTRIBUTED)
        for start, end in self.canvas.take(spell.start_ns, spell.end_ns):
            busy = self.facts.timeline.busy_ns(start, end)
            self.canvas.give(Label(Component.BUDGET), busy)
            self.canvas.give(Label(Component.STALLED), end - start - busy)


def _awaits_load(spell: Spell) -> bool:
    """Whether the scheduler waits for a load."""
    return spell.state is State.WAITING and spell.reason is Reason.KV_LOAD
