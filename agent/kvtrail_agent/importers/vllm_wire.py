"""The KV events of vLLM and SGLang on the wire, every generation of them, as one form: a name and named fields.

A payload is `[ts, [event, …], rank?]` in MessagePack. An event is a map with `type` since vLLM 0.24 and SGLang 0.5.2x, before
that a list whose fields stand in the order in which they were added. Each event is read by itself: one that is broken hides no
other.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad
from kvtrail_agent.importers.hashes import shown

LARGEST_RANK: Final = 2**16 - 2
_LATEST_S: Final = 9_000_000_000
_S_NS: Final = 1_000_000_000
_LONGEST_NAME: Final = 80
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)


class Dialect(Enum):
    """Which of the two engines writes; they differ in what stands where in a list, and in what a clear clears."""

    VLLM = "vllm"
    SGLANG = "sglang"


_STORED: Final = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
_LATER_STORED: Final = {
    Dialect.VLLM: ("lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"),
    Dialect.SGLANG: ("cache_salt", "session_id", "lora_name"),
}
_REMOVED: Final = ("block_hashes", "medium")
_LATER_REMOVED: Final = {Dialect.VLLM: ("group_idx",), Dialect.SGLANG: ()}

KNOWN_FIELDS: Final[dict[str, frozenset[str]]] = {
    "BlockStored": frozenset(
        {*_STORED, *_LATER_STORED[Dialect.VLLM], *_LATER_STORED[Dialect.SGLANG], "locality", "ownership", "lookahead_token_ids"}
    ),
    "BlockRemoved": frozenset({*_REMOVED, "group_idx", "locality", "ownership"}),
    "AllBlocksCleared": frozenset(),
}
"""Every field that any generation has, by event. Fields of events that are not here are unknown as a whole."""


class WireEvent(NamedTuple):
    """One event: its name, and its fields by name."""

    name: str
    fields: dict[str, object]


class Unread(NamedTuple):
    """An event that could not be read, at its place in the batch."""

    bad: Bad


@dataclass(frozen=True, slots=True)
class WireBatch:
    """One payload: when it was sent (None: it does not say it in a form that can be read), by which rank, and its events."""

    ts_ns: int | None
    rank: int
    events: tuple[WireEvent | Unread, ...]
    beyond: tuple[object, ...] = field(default=())


def read_payload(payload: bytes, dialect: Dialect) -> WireBatch:
    """A payload as a batch. About 2 µs an event; runs anywhere.

    Raises:
        ForeignInvalid: it is no batch at all, so that nothing of it can be told from the rest.
    """
    try:
        head = msgspec.msgpack.decode(payload, type=list[msgspec.Raw])
        raw_events = msgspec.msgpack.decode(head[1], type=list[msgspec.Raw]) if len(head) > 1 else []
        rest = [msgspec.msgpack.decode(raw) for raw in head[2:]]
    except _UNREADABLE as error:
        raise ForeignInvalid(f"no batch of events in MessagePack: {str(error)[:_LONGEST_NAME]}") from error
    if len(head) < 2:  # noqa: PLR2004 - time and events
        raise ForeignInvalid(f"a list of {len(head)} where time and events are due")
    events = tuple(_event(number, raw, dialect) for number, raw in enumerate(raw_events))
    return WireBatch(_ts_ns(head[0]), _rank(rest[0] if rest else None), events, tuple(rest[1:]))


def read_objects(ts: object, events: list[object], rank: object, dialect: Dialect) -> WireBatch:
    """A batch whose payload was decoded already, as files of JSON hold it. Raises as `read_payload`."""
    return WireBatch(time_ns(ts), _rank(rank), tuple(_named(number, one, dialect) for number, one in enumerate(events)))


def time_ns(ts: object) -> int | None:
    """Seconds since 1970 as nanoseconds; None where they are no such number."""
    if isinstance(ts, bool) or not isinstance(ts, int | float) or not 0 <= ts <= _LATEST_S:
        return None
    whole = int(ts)
    return whole * _S_NS + round((ts - whole) * _S_NS)


def _ts_ns(raw: msgspec.Raw) -> int | None:
    """The time of a payload."""
    try:
        return time_ns(msgspec.msgpack.decode(raw))
    except _UNREADABLE:
        return None


def _rank(value: object) -> int:
    """The data-parallel rank; 0 where there is none.

    Raises:
        ForeignInvalid: it is no rank, and events under a wrong one would mix two engines.
    """
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_RANK:
        return value
    raise ForeignInvalid(f"rank is {shown(value)}")


def _event(number: int, raw: msgspec.Raw, dialect: Dialect) -> WireEvent | Unread:
    """One event from its bytes."""
    try:
        return _named(number, msgspec.msgpack.decode(raw), dialect)
    except _UNREADABLE as error:
        return Unread(Bad(f"event {number}", str(error)[:_LONGEST_NAME]))


def _named(number: int, value: object, dialect: Dialect) -> WireEvent | Unread:
    """One event from its decoded form, a map or a list."""
    if isinstance(value, dict) and isinstance(name := value.get("type"), str) and name:
        fields = {key if isinstance(key, str) else shown(key): one for key, one in value.items() if key != "type"}
        return WireEvent(name[:_LONGEST_NAME], fields)
    if isinstance(value, list) and value and isinstance(value[0], str) and value[0]:
        return WireEvent(value[0][:_LONGEST_NAME], _by_place(value[0], value[1:], dialect))
    return Unread(Bad(f"event {number}", f"{shown(value)} where a map with a type, or a list that begins with one, is due"))


def _by_place(name: str, values: list[object], dialect: Dialect) -> dict[str, object]:
    """Fields of a list under their names; those beyond the known ones under their place."""
    names: tuple[str, ...] = {
        "BlockStored": _STORED + _LATER_STORED[dialect],
        "BlockRemoved": _REMOVED + _LATER_REMOVED[dialect],
    }.get(name, ())
    return {names[place] if place < len(names) else f"place_{place}": value for place, value in enumerate(values)}
