"""Where the parts of ops and chunks lie in time: facts as labelled segments."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from kvtrail_schema.enums import Reason, Tier

from kvtrail_collector.facts import Chunk, Op, State, StateChange
from kvtrail_collector.ledger_parts import TIER_NAMES, UNATTRIBUTED, Component, Label

FOREVER_NS = 2**63 - 1


class Segment(NamedTuple):
    """One interval with the label that it would own."""

    start_ns: int
    end_ns: int
    label: Label


@cache
def op_labels(src: Tier, dst: Tier) -> tuple[Label, ...]:
    """The labels of the six parts of an op and of its trailing wait, in order of time."""
    tier = TIER_NAMES[max(src, dst)]
    return (
        Label(Component.TIER_QUEUE, tier),
        Label(Component.ALLOC, tier),
        Label(Component.SUBMIT, tier),
        Label(Component.STORAGE_READ, tier),
        Label(Component.COPY, tier, f"{TIER_NAMES[src]}→{TIER_NAMES[dst]}"),
        Label(Component.SYNC),
        Label(Component.COPY_WAIT),
    )


def op_segments(op: Op) -> list[Segment]:
    """An op laid out from its queueing: six parts, clipped from the end to its span, then `copy_wait`.

    An op without a closing event is known until it went into service, and `unattributed` from there on.
    """
    labels = op_labels(op.src, op.dst)
    if op.closing_ns is None:
        started = op.queued_ns if op.started_ns is None else max(op.queued_ns, op.started_ns)
        return [Segment(op.queued_ns, started, labels[0]), Segment(started, FOREVER_NS, UNATTRIBUTED)]
    found, t_ns, end = [], op.queued_ns, op.closing_ns
    for length, label in zip((op.queue_ns, op.alloc_ns, op.submit_ns, op.io_ns, op.copy_ns, op.sync_ns), labels, strict=False):
        if length and t_ns < end:
            found.append(Segment(t_ns, min(t_ns + length, end), label))
            t_ns += length
    if t_ns < end:
        found.append(Segment(t_ns, end, labels[-1]))
    return found


def waiting_segments(op: Op) -> list[Segment]:
    """An op that nothing has taken from its queue by now: all of its time so far is queue."""
    return [Segment(op.queued_ns, FOREVER_NS, op_labels(op.src, op.dst)[0])]


def ends_last_first(ops: Iterable[Op]) -> list[Op]:
    """Ops in the order in which they own an instant that several cover: ends last, then starts later, then smaller id."""
    return sorted(ops, key=lambda op: (-(FOREVER_NS if op.closing_ns is None else op.closing_ns), -op.queued_ns, op.op))


@cache
def _chunk_label(reason: Reason) -> Label:
    """The part that a chunk of this reason is."""
    if reason is Reason.NEW:
        return Label(Component.NEW_PREFILL)
    return Label(Component.RECOMPUTE_PREFILL, None, reason.name.lower())


def chunk_segments(chunks: Sequence[Chunk]) -> list[Segment]:
    """Steps in which the request computed, split by tokens: recompute first, the remainder to the last part.

    Latest step first, which is the order in which steps own an instant, should two of them ever overlap.
    """
    spans = sorted(chunks, key=lambda chunk: (-chunk.end_ns, -chunk.start_ns))
    return [piece for _, group in groupby(spans, key=lambda chunk: chunk[:2]) for piece in _split(list(group))]


def _split(chunks: list[Chunk]) -> list[Segment]:
    """The parts of one step of one request."""
    start, end = chunks[0].start_ns, chunks[0].end_ns
    if not all(chunk.start_known for chunk in chunks):
        return [Segment(start, end, UNATTRIBUTED)]
    if len(chunks) == 1:
        return [Segment(start, end, _chunk_label(chunks[0].reason))]
    chunks.sort(key=lambda chunk: (chunk.reason is Reason.NEW, chunk.reason))
    total, found, t_ns = sum(chunk.tokens for chunk in chunks), [], start
    for chunk in chunks[:-1]:
        length = (end - start) * chunk.tokens // total if total else 0
        found.append(Segment(t_ns, t_ns + length, _chunk_label(chunk.reason)))
        t_ns += length
    return [*found, Segment(t_ns, end, _chunk_label(chunks[-1].reason))]


_WAITS = {
    None: Component.CAPACITY,
    Reason.CAPACITY: Component.CAPACITY,
    Reason.KV_LOAD: Component.DEFERRED,
    Reason.BUDGET: Component.BUDGET,
    Reason.LIMIT: Component.LIMIT,
    Reason.BACKPRESSURE: Component.BACKPRESSURE,
}


@cache
def wait_label(reason: Reason | None) -> Label:
    """The part that a wait for this reason is.

    A wait for a grammar is deferred like a wait for data; a preemption is a lack of capacity whatever was preferred.
    """
    if reason in _WAITS:
        return Label(_WAITS[reason])
    component = Component.DEFERRED if reason is Reason.GRAMMAR else Component.CAPACITY
    return Label(component, None, reason.name.lower() if reason else None)


class Spell(NamedTuple):
    """A stretch in one state."""

    start_ns: int
    end_ns: int
    state: State
    reason: Reason | None


def spells(states: Sequence[StateChange], start_ns: int, end_ns: int) -> list[Spell]:
    """The states of a request from its arrival to its end, without a gap: it waits until it is told otherwise."""
    found: list[Spell] = []
    since, state, reason = start_ns, State.WAITING, None
    for change in sorted(states, key=lambda change: change.t_ns):
        t_ns = min(max(change.t_ns, start_ns), end_ns)
        if t_ns > since:
            found.append(Spell(since, t_ns, state, reason))
            since = t_ns
        state, reason = change.state, change.reason
    if end_ns > since:
        found.append(Spell(since, end_ns, state, reason))
    return found
