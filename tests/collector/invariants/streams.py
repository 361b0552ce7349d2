"""Streams of few blocks in few places, in which anything may happen: much of it breaks an invariant."""

from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from kvtrail_schema import events as ev
from kvtrail_schema.enums import Stage, Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, EventId, NamespaceId, OpId, RequestId, Slot, StepId
from kvtrail_schema.reasons import (
    AgentReason,
    ClearReason,
    DropReason,
    ErrorReason,
    EvictReason,
    FinishReason,
    InvalidateReason,
    SwapInFailReason,
)

STEP_NS: Final = 3_000_000
"""Between two events of a stream: more than the slack by which one may seem early."""

_blocks = st.integers(1, 3).map(BlockId)
_slots = st.integers(0, 1).map(Slot)
_ops = st.integers(1, 6).map(OpId)
_reqs = st.integers(1, 4).map(RequestId)
_tiers = st.sampled_from([Tier.GPU, Tier.HOST])
_spaces = st.sampled_from([NamespaceId(7), NamespaceId(8)])
_few = st.integers(0, 40)
_copy: Final[dict[str, st.SearchStrategy[Any]]] = {"block": _blocks, "tier": _tiers, "slot": _slots}
_hop: Final[dict[str, st.SearchStrategy[Any]]] = {
    "op": _ops,
    "src": st.just(Tier.HOST),
    "dst": st.just(Tier.GPU),
    "block": _blocks,
}
_load: Final[dict[str, st.SearchStrategy[Any]]] = {**_hop, "slot": st.none() | _slots}
_save: Final[dict[str, st.SearchStrategy[Any]]] = {**_load, "src": st.just(Tier.GPU), "dst": st.just(Tier.HOST)}


def _of(kind: type[Event], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    """Events of one kind, without their numbers."""
    return st.builds(kind, t_ns=st.just(0), **fields)


HAPPENINGS: Final = st.one_of(
    _of(ev.BlockCreated, **_copy, tokens=_few),
    _of(ev.AttentionRead, req=_reqs, ns=_spaces, **_copy),
    _of(ev.AttentionRead, req=_reqs, ns=_spaces, **_copy),
    _of(ev.Evicted, reason=st.sampled_from([EvictReason.CAPACITY, EvictReason.CLEAR]), **_copy),
    _of(ev.Evicted, reason=st.just(EvictReason.CAPACITY), **_copy),
    _of(ev.Invalidated, reason=st.sampled_from(InvalidateReason), cause=st.just(EventId(1)), **_copy),
    _of(ev.SwapInStarted, **_load),
    _of(ev.SwapInLoaded, **_load),
    _of(ev.SwapInFailed, reason=st.sampled_from(SwapInFailReason), **_hop),
    _of(ev.SwapOutStarted, **_save),
    _of(ev.SwapOutWritten, **_save),
    _of(ev.BlockPinned, refs=st.integers(0, 3), **_copy),
    _of(ev.BlockUnpinned, refs=st.integers(0, 3), **_copy),
    _of(ev.TierCleared, tier=_tiers, reason=st.sampled_from(ClearReason), ns=st.none() | _spaces),
    _of(ev.RequestArrived, req=_reqs, tokens=_few),
    _of(ev.RequestFirstToken, req=_reqs),
    _of(ev.RequestFinished, req=_reqs, tokens=_few, reason=st.sampled_from(FinishReason)),
    _of(ev.AgentHeartbeat, reason=st.sampled_from(AgentReason), produced=st.just(1)),
    _of(ev.AgentHeartbeat, reason=st.sampled_from(AgentReason), produced=st.just(1)),
    _of(ev.AgentStopped, reason=st.sampled_from(AgentReason), produced=st.just(1)),
    _of(ev.LookupFinished, req=_reqs, duration_ns=_few, tokens=_few, tokens_gpu=st.none() | _few, tokens_nvme=st.none() | _few),
    _of(ev.StepFinished, step=st.just(StepId(1)), tokens=_few, prefill_tokens=st.none() | _few, decode_tokens=st.none() | _few),
    _of(ev.CapacitySampled, tier=_tiers, capacity_bytes=st.none() | _few, used_bytes=st.none() | _few, ns=st.none() | _spaces),
    _of(ev.ClockStepped, value=st.sampled_from([-2e9, 0.0, 2e9])),
    _of(ev.CounterSampled, text=st.just("hits"), value=st.sampled_from([-1.0, 2.0])),
    _of(ev.Error, reason=st.sampled_from(ErrorReason), tier=st.none() | _tiers),
    _of(
        ev.EventsDropped,
        stage=st.sampled_from(Stage),
        reason=st.sampled_from(DropReason),
        first_seq=_few,
        last_seq=_few,
        count=_few,
    ),
    _of(
        ev.ManifestDeclared,
        text=st.sampled_from(['{"block_tokens": 16}', '{"host_tier_bytes": 9, "memory_limit_bytes": 5}', "["]),
    ),
)


def streams() -> st.SearchStrategy[list[Event]]:
    """The events of one stream, numbered from 1, three milliseconds apart."""
    return st.lists(HAPPENINGS, min_size=1, max_size=40).map(_told)


def _told(events: list[Event]) -> list[Event]:
    """Those that a producer may tell of: a manifest first, a transfer and a request once each; with numbers and times."""
    seen: set[object] = set()
    kept: list[Event] = []
    for event in sorted(events, key=lambda event: not isinstance(event, ev.ManifestDeclared)):
        key = _once(event)
        if key is None or (key not in seen and not (_follows_arrival(event) and ("RequestArrived", key[1]) not in seen)):
            kept.append(event)
            seen |= set() if key is None else {key, *_closes(event)}
    return [msgspec.structs.replace(event, seq=seq, t_ns=seq * STEP_NS) for seq, event in enumerate(kept, 1)]


def _once(event: Event) -> tuple[object, ...] | None:
    """What may be told once; None for what may be told often."""
    match event:
        case ev.RequestArrived() | ev.RequestFirstToken() | ev.RequestFinished():
            return (type(event).__name__, event.req)
        case ev.SwapInStarted() | ev.SwapOutStarted():
            return ("begun", event.op, event.dst, event.slot)
        case ev.SwapInLoaded() | ev.SwapOutWritten():
            return ("done", event.op, event.dst, event.slot)
        case ev.ManifestDeclared():
            return ("manifest",) if "block_tokens" in event.text else None
    return None


def _closes(event: Event) -> set[tuple[object, ...]]:
    """What can no longer be told after an event: a transfer that is done does not begin."""
    if isinstance(event, ev.SwapInLoaded | ev.SwapOutWritten):
        return {("begun", event.op, event.dst, event.slot)}
    return set()


def _follows_arrival(event: Event) -> bool:
    """Whether an event is of a request that has to have come before."""
    return isinstance(event, ev.RequestFirstToken | ev.RequestFinished)
