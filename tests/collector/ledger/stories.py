"""Random but well-formed stories of one request, for properties of the ledger."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CopyWaited,
    Event,
    LookupFinished,
    PrefetchUsed,
    PrefillChunk,
    RequestAdmitted,
    RequestArrived,
    RequestFirstToken,
    RequestPreempted,
    RequestResumed,
    RequestWaiting,
    StepFinished,
    StepStarted,
    SwapInLoaded,
    SwapInQueued,
    SwapOutQueued,
    SwapOutWritten,
)
from kvtrail_schema.identity import BlockId, OpId, PrefetchId, RequestId, StepId
from kvtrail_schema.reasons import PrefillReason, WaitReason

REQUEST = RequestId(1)
_TIMES = st.integers(0, 300)
_LENGTHS = st.integers(0, 60)


@st.composite
def stories(draw: st.DrawFn) -> list[Event]:
    """Events of one request in the order of seq; times need not be, as completions are told late."""
    arrived = draw(st.integers(0, 50))
    events: list[Event] = [RequestArrived(t_ns=arrived, req=REQUEST, tokens=10)]
    events += draw(st.lists(_states(), max_size=5))
    events += draw(st.lists(_lookups(), max_size=2))
    for number in range(draw(st.integers(0, 4))):
        events += draw(_ops(OpId(number + 1)))
    for number in range(draw(st.integers(0, 5))):
        events += draw(_steps(StepId(number + 1)))
    events += draw(st.lists(_waits(), max_size=2))
    if draw(st.booleans()):
        events.append(RequestFirstToken(t_ns=draw(st.integers(arrived, 350)), req=REQUEST))
    return numbered(draw(st.permutations(events)), gap_at=draw(st.none() | st.integers(2, 12)))


@st.composite
def crowds(draw: st.DrawFn) -> list[Event]:
    """Events of some requests of one stream, who share its steps and its holes, wait for each other's loads, and use
    prefetches. They live at the same time or one after the other, and are told in the order of time or in none.
    """
    events: list[Event] = []
    apart_ns = draw(st.sampled_from([0, 200, 500]))
    for number in range(draw(st.integers(1, 4))):
        own = [_renamed(event, number, apart_ns * number) for event in draw(stories())]
        events += own
        events += [PrefetchUsed(t_ns=5, prefetch=PrefetchId(7), block=BlockId(1), req=RequestId(number + 1))] * draw(
            st.integers(0, 1)
        )
    op: dict[str, Any] = {"op": OpId(91), "src": Tier.NVME, "dst": Tier.GPU, "prefetch": PrefetchId(7)}
    queued, length = draw(_TIMES), draw(_LENGTHS)
    events += [SwapInQueued(t_ns=queued, **op), SwapInLoaded(t_ns=queued + length, io_ns=length // 2, **op)]
    told = sorted(events, key=lambda event: event.t_ns or 0) if draw(st.booleans()) else draw(st.permutations(events))
    return numbered(told, gap_at=draw(st.none() | st.integers(2, 40)))


def _renamed(event: Event, number: int, later_ns: int) -> Event:
    """The event as one of another request; its steps and most of its ops are its own, waits may name those of others."""
    changed: dict[str, Any] = {"t_ns": (event.t_ns or 0) + later_ns}
    if getattr(event, "req", None) is not None:
        changed["req"] = RequestId(number + 1)
    if getattr(event, "step", None) is not None:
        changed["step"] = StepId(event.step + 10 * number)  # type: ignore[attr-defined]  # of those kinds that have one
    if getattr(event, "op", None) is not None and not isinstance(event, CopyWaited):
        changed["op"] = OpId(event.op + 3 * number)  # type: ignore[attr-defined]  # of those kinds that have one
    return msgspec.structs.replace(event, **changed)


def numbered(events: list[Event], gap_at: int | None = None) -> list[Event]:
    """The events with their seqs, with a hole before one of them if asked."""
    shift = [0 if gap_at is None or place < gap_at else 3 for place in range(len(events))]
    return [
        type(event)(**{name: getattr(event, name) for name in event.__struct_fields__} | {"seq": place + 1 + shift[place]})
        for place, event in enumerate(events)
    ]


def _states() -> st.SearchStrategy[Event]:
    """A change of state."""
    return st.one_of(
        st.builds(lambda t, why: RequestWaiting(t_ns=t, req=REQUEST, reason=why), _TIMES, st.sampled_from(WaitReason)),
        st.builds(lambda t: RequestAdmitted(t_ns=t, req=REQUEST), _TIMES),
        st.builds(lambda t: RequestPreempted(t_ns=t, req=REQUEST), _TIMES),
        st.builds(lambda t: RequestResumed(t_ns=t, req=REQUEST), _TIMES),
    )


def _lookups() -> st.SearchStrategy[Event]:
    """A lookup."""
    return st.builds(lambda t, d: LookupFinished(t_ns=t, req=REQUEST, duration_ns=d, tokens=1), _TIMES, _LENGTHS)


def _waits() -> st.SearchStrategy[Event]:
    """A wait for a copy."""
    named = st.none() | st.integers(1, 5).map(OpId)
    return st.builds(lambda t, d, op: CopyWaited(t_ns=t, req=REQUEST, wait_ns=d, op=op), _TIMES, _LENGTHS, named)


@st.composite
def _ops(draw: st.DrawFn, op: OpId) -> list[Event]:
    """A load or a write-back, sometimes without its closing event, sometimes with parts that exceed its span."""
    queued, tier = draw(_TIMES), draw(st.sampled_from([Tier.HOST, Tier.NVME]))
    queue_ns, io_ns, copy_ns = draw(_LENGTHS), draw(_LENGTHS), draw(_LENGTHS)
    closing = max(queued, queued + queue_ns + io_ns + copy_ns + draw(st.integers(-10, 20)))
    named = draw(st.sampled_from([REQUEST, None]))  # its first row names the request; the others need not
    if draw(st.booleans()):
        first: Event = SwapInQueued(t_ns=queued, op=op, src=tier, dst=Tier.GPU, req=REQUEST)
        last: Event = SwapInLoaded(
            t_ns=closing, op=op, src=tier, dst=Tier.GPU, req=named, queue_ns=queue_ns, io_ns=io_ns, copy_ns=copy_ns
        )
    else:
        first = SwapOutQueued(t_ns=queued, op=op, src=Tier.GPU, dst=tier, req=REQUEST)
        last = SwapOutWritten(t_ns=closing, op=op, src=Tier.GPU, dst=tier, req=named, queue_ns=queue_ns, io_ns=io_ns)
    return [first, last] if draw(st.integers(0, 5)) else [first]


@st.composite
def _steps(draw: st.DrawFn, step: StepId) -> list[Event]:
    """A step, with or without chunks of the request, sometimes with one of its own events lost."""
    start = draw(_TIMES)
    end = start + draw(_LENGTHS)
    reasons = draw(st.lists(st.sampled_from(PrefillReason), max_size=3))
    chunks: list[Event] = [
        PrefillChunk(t_ns=end, req=REQUEST, step=step, tokens=draw(st.integers(0, 50)), reason=why) for why in reasons
    ]
    frame: list[Event] = [StepStarted(t_ns=start, step=step), StepFinished(t_ns=end, step=step, tokens=5)]
    lost = draw(st.integers(0, 9))
    return chunks + [event for place, event in enumerate(frame) if place != lost]


__all__ = ["REQUEST", "crowds", "numbered", "stories"]
