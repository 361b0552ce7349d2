"""LMCache's own event bus (multiprocess mode) as events of ours: copies between GPU and host, loads and stores of L2, lookups.

Read from a file of its events, or inside its server by `attach/lmcache.py`. What has no event of ours is not left out: each
number in it is a counter below `lmcache`. Loads and stores of L2 have no request: their `request_id` is LMCache's own number.
"""

from collections.abc import Callable
from typing import Final

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CounterSampled,
    Error,
    Event,
    LookupFinished,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
    SwapOutFailed,
    SwapOutQueued,
    SwapOutStarted,
    SwapOutWritten,
)
from kvtrail_schema.identity import OpId, RequestId, keyed_id
from kvtrail_schema.reasons import ErrorReason, SwapOutFailReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U32, U64, Fields, number, object_of, seconds_ns, text_of, whole
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import redacted
from kvtrail_agent.importers.lmcache_batches import l2_tier

_MOST_OPEN: Final = 100_000
_FAMILIES: Final = ("l1.", "l2.", "sm.", "mp.", "cb.", "timeout.", "trace.")
"""What the names of its events begin with; a newer one of a known family has its numbers as counters as well."""


class LmcacheBus:
    """Decodes bus events in their order; used by one thread. Holds the starts of lookups that did not end, 100,000 at most."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lookups: dict[str, int] = {}
        self._l2 = Tier.NVME
        self._count = 0

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One event: `{"event_type", "timestamp", "metadata", "session_id"}`. `sequence` is not used."""
        decoded, part = Decoded(), Part(Origin(life=self._source.number))
        self._count += 1
        try:
            fields = object_of(value, "an event")
            name, t_ns = _named(fields)
            metadata = object_of(fields.get("metadata") or {}, "metadata")
            session = text_of(fields, "session_id") or ""
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        decoded.parts.append(part)
        self._typed(decoded, part, name[:80], metadata, session, t_ns)
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _typed(self, decoded: Decoded, part: Part, name: str, told: Fields, session: str, t_ns: int) -> None:  # noqa: PLR0917 - one event
        """One event by its type."""
        if not name.startswith(_FAMILIES):
            decoded.unknown[f"event {name}"] += 1
            part.add(protocol_error(t_ns, f"unknown event {name}"), redacted(self._source.key, told))
            return
        decoded.seen[name] += 1
        step = self._steps().get(name)
        try:
            events = [] if step is None else step(told, session, t_ns)
        except ForeignInvalid as error:
            decoded.quarantine(part, t_ns, Bad(name, str(error)))
            return
        for event in events or _counters(name, told, t_ns):
            part.add(event)

    def _steps(self) -> dict[str, Callable[[Fields, str, int], list[Event]]]:
        """What makes events of ours of an event."""
        return {
            "l2.store.submitted": self._l2_store_submitted,
            "l2.store.completed": self._l2_store_completed,
            "l2.load_task.submitted": self._l2_load_submitted,
            "l2.load_task.completed": self._l2_load_completed,
            "l1.allocation.failed": _allocation_failed,
            "timeout.raised": _timed_out,
            "mp.store.start": self._store_started,
            "mp.store.end": self._store_ended,
            "mp.retrieve.start": self._retrieve_started,
            "mp.retrieve.end": self._retrieve_ended,
            "mp.lookup_prefetch.start": self._lookup_started,
            "mp.lookup_prefetch.end": self._lookup_ended,
        }

    def _l2_store_submitted(self, told: Fields, _session: str, t_ns: int) -> list[Event]:
        """Keys wait to be written to L2."""
        tier, size = self._tier(told), whole(told, "total_bytes", U64)
        return [SwapOutQueued(t_ns=t_ns, op=self._task(told, b"store"), src=Tier.HOST, dst=tier, bytes=size)]

    def _l2_store_completed(self, told: Fields, _session: str, t_ns: int) -> list[Event]:
        """They are written, or were not."""
        tier, op, size = self._tier(told), self._task(told, b"store"), whole(told, "bytes_transferred", U64)
        if whole(told, "failed_count", U64) and not whole(told, "succeeded_count", U64):
            return [SwapOutFailed(t_ns=t_ns, op=op, src=Tier.HOST, dst=tier, reason=SwapOutFailReason.IO, bytes=size)]
        return [SwapOutWritten(t_ns=t_ns, op=op, src=Tier.HOST, dst=tier, bytes=size)]

    def _l2_load_submitted(self, told: Fields, _session: str, t_ns: int) -> list[Event]:
        """Keys wait to be read from L2."""
        tier, size = self._tier(told), whole(told, "total_bytes", U64)
        return [SwapInQueued(t_ns=t_ns, op=self._task(told, b"load"), src=tier, dst=Tier.HOST, bytes=size)]

    def _l2_load_completed(self, told: Fields, _session: str, t_ns: int) -> list[Event]:
        """They are read. How much of the time was queue and how much I/O is not told."""
        return [SwapInLoaded(t_ns=t_ns, op=self._task(told, b"load"), src=self._tier(told), dst=Tier.HOST)]

    def _store_started(self, told: Fields, session: str, t_ns: int) -> list[Event]:
        """A copy from the GPU to the host began."""
        op, req = self._transfer(told, session, b"store")
        return [SwapOutStarted(t_ns=t_ns, op=op, src=Tier.GPU, dst=Tier.HOST, req=req)]

    def _store_ended(self, told: Fields, session: str, t_ns: int) -> list[Event]:
        """It is done."""
        op, req = self._transfer(told, session, b"store")
        size, tokens = whole(told, "total_bytes", U64), whole(told, "num_tokens", U32)
        return [SwapOutWritten(t_ns=t_ns, op=op, src=Tier.GPU, dst=Tier.HOST, bytes=size, tokens=tokens, req=req)]

    def _retrieve_started(self, told: Fields, session: str, t_ns: int) -> list[Event]:
        """A copy from the host to the GPU began."""
        op, req = self._transfer(told, session, b"retrieve")
        return [SwapInStarted(t_ns=t_ns, op=op, src=Tier.HOST, dst=Tier.GPU, req=req)]

    def _retrieve_ended(self, told: Fields, session: str, t_ns: int) -> list[Event]:
        """It is done."""
        op, req = self._transfer(told, session, b"retrieve")
        size, tokens = whole(told, "total_bytes", U64), whole(told, "num_tokens", U32)
        return [SwapInLoaded(t_ns=t_ns, op=op, src=Tier.HOST, dst=Tier.GPU, bytes=size, tokens=tokens, req=req)]

    def _lookup_started(self, _told: Fields, session: str, t_ns: int) -> list[Event]:
        """A lookup began; it is told once it ended."""
        if session and len(self._lookups) < _MOST_OPEN:
            self._lookups[session] = t_ns
        return []

    def _lookup_ended(self, told: Fields, session: str, t_ns: int) -> list[Event]:
        """A lookup ended, L2 included where it was asked: its queue and its I/O are in the duration."""
        began = self._lookups.pop(session, None)
        tokens = whole(told, "requested_tokens", U32)
        if began is None or tokens is None:
            return []
        l1, l2 = whole(told, "l1_hit_tokens", U32), whole(told, "l2_hit_tokens", U32)
        is_local = self._l2 is Tier.NVME
        found = LookupFinished(
            t_ns=t_ns,
            req=self._request(session),
            duration_ns=max(t_ns - began, 0),
            tokens=tokens,
            tokens_host=l1,
            tokens_nvme=l2 if is_local else None,
            tokens_remote=None if is_local else l2,
        )
        return [found]

    def _tier(self, told: Fields) -> Tier:
        """The tier of an L2 adapter."""
        self._l2 = l2_tier(text_of(told, "l2_name") or "")
        return self._l2

    def _task(self, told: Fields, what: bytes) -> OpId:
        """The op of a task: its number is of its adapter and its direction."""
        task, adapter = told.get("task_id"), told.get("adapter_index")
        named = f"{task}\0{adapter}\0{told.get('request_id') if what == b'load' else ''}"
        return OpId(keyed_id(self._source.key, b"lmcache-task", what, named.encode(errors="replace")))

    def _transfer(self, told: Fields, session: str, what: bytes) -> tuple[OpId, RequestId | None]:
        """The op of a copy and its request: `transfer_key` is `request#number`; a start without one is known by its session."""
        name = text_of(told, "transfer_key") or session
        request = name.rpartition("#")[0] or session
        op = OpId(keyed_id(self._source.key, b"lmcache-transfer", what, name.encode(errors="replace")))
        return op, self._request(request) if request else None

    def _request(self, name: str) -> RequestId:
        """A request by the engine's own id of it: the same one that an attachment inside the engine gives it."""
        return RequestId(keyed_id(self._source.key, b"request", name.encode(errors="replace")))


def _named(fields: Fields) -> tuple[str, int]:
    """What an event is called, and its time.

    Raises:
        ForeignInvalid: it has not both.
    """
    name, t_ns = text_of(fields, "event_type"), seconds_ns(fields.get("timestamp"))
    if name is None:
        raise ForeignInvalid("event_type is not there")
    if t_ns is None:
        raise ForeignInvalid("timestamp is no number of seconds since 1970")
    return name, t_ns


def _allocation_failed(told: Fields, _session: str, t_ns: int) -> list[Event]:
    """The host pool had no room."""
    return [Error(t_ns=t_ns, reason=ErrorReason.ALLOC, tier=Tier.HOST, text=(text_of(told, "during") or "")[:80])]


def _timed_out(told: Fields, _session: str, t_ns: int) -> list[Event]:
    """Something took longer than it may."""
    return [Error(t_ns=t_ns, reason=ErrorReason.TIMEOUT, text=(text_of(told, "exception_type") or "timeout")[:80])]


def _counters(name: str, told: Fields, t_ns: int) -> list[Event]:
    """An event without one of ours: how often it was, and each number in it."""
    found: list[Event] = [CounterSampled(t_ns=t_ns, text=f"lmcache.{name}", value=1.0)]
    for one, value in told.items():
        size = float(len(value)) if isinstance(value, list | tuple | dict) else None
        known = size if size is not None else (None if isinstance(value, str) else number(value))
        if known is not None:
            found.append(CounterSampled(t_ns=t_ns, text=f"lmcache.{name}.{one}"[:200], value=known))
    return found
