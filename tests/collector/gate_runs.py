"""Runs for the tests of gates: requests that arrive one after another, each with a fate of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

import msgspec
from kvtrail_agent.transports.file import FileTransport
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import encode_batch
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BlockCreated,
    Event,
    RequestArrived,
    RequestCancelled,
    RequestFinished,
    RequestFirstToken,
    RequestRejected,
)
from kvtrail_schema.identity import BlockId, NamespaceId, RequestId, Slot
from kvtrail_schema.reasons import CancelReason, FinishReason, RejectReason

from tests.collector.frames import header

MS = 1_000_000
EVERY_NS = 10 * MS
TTFT_NS = 5 * MS
"""Of the first request; each later one has a nanosecond more."""
TOKENS = 11
TPOT_NS = 2 * MS


class Fate(Enum):
    """What becomes of a request."""

    FINISHED = "finished"
    REJECTED = "rejected"
    GIVEN_UP = "its client called it off before its first token, after 50 ms"
    CUT = "its client called it off after its first token"
    HANGING = "no first token, and no end"


def run(fates: Iterable[Fate], slower: float = 1.0, beside: Iterable[Event] = ()) -> list[Event]:
    """The events of a run in order of time, numbered without a hole; those beside come first."""
    events = [event for number, fate in enumerate(fates) for event in _request(number, fate, slower)]
    ordered = [*beside, *sorted(events, key=lambda event: event.t_ns or 0)]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(ordered, 1)]


def _request(number: int, fate: Fate, slower: float) -> Iterator[Event]:
    """One request."""
    req, at_ns = RequestId(number), number * EVERY_NS
    token_ns = at_ns + int(slower * TTFT_NS) + number
    end_ns = token_ns + int(slower * TPOT_NS * (TOKENS - 1))
    yield RequestArrived(t_ns=at_ns, req=req, tokens=100, text=f"r-{number}")
    if fate is Fate.REJECTED:
        yield RequestRejected(t_ns=at_ns, req=req, reason=RejectReason.LIMIT)
    elif fate is Fate.GIVEN_UP:
        yield RequestCancelled(t_ns=at_ns + 50 * MS, req=req, reason=CancelReason.CLIENT)
    elif fate is not Fate.HANGING:
        yield RequestFirstToken(t_ns=token_ns, req=req)
    if fate is Fate.FINISHED:
        yield RequestFinished(t_ns=end_ns, req=req, tokens=TOKENS, reason=FinishReason.STOP)
    elif fate is Fate.CUT:
        yield RequestCancelled(t_ns=end_ns, req=req, reason=CancelReason.CLIENT)


def collision() -> list[Event]:
    """One hash that stands for blocks of two namespaces."""
    return [BlockCreated(t_ns=0, block=BlockId(9), tier=Tier.GPU, slot=Slot(place), ns=NamespaceId(place)) for place in (1, 2)]


def recorded(folder: Path, events: list[Event]) -> Path:
    """A folder as a recorder leaves it."""
    folder.mkdir(mode=0o700)
    head = header([event.seq for event in events])
    transport = FileTransport(folder, name="run")
    transport.send(encode_batch(head, table_of(events)), head)
    transport.close()
    return folder
