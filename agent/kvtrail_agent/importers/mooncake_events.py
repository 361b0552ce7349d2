"""KV events of Mooncake's store (RFC 1527) as events of ours, from files that hold its messages like those of vLLM.

A payload is `[timestamp_ms, [event, …], rank]`. A number of a message that is missing is one that the store dropped: it leaves
a number out for each. They tell placement by backend; no request, no duration.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Evicted, NamespaceDeclared, TierCleared
from kvtrail_schema.identity import Namespace, NamespaceId, namespace_id, namespace_text
from kvtrail_schema.reasons import ClearReason, EvictReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.copies import Copies, Name
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U32, Fields, object_of, text_of, whole
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import block_of, redacted, shown
from kvtrail_agent.importers.lives import Arrival, Life
from kvtrail_agent.importers.vllm_messages import Envelope, read_envelope
from kvtrail_agent.importers.vllm_wire import LARGEST_RANK

_MS_NS: Final = 1_000_000
_LATEST_MS: Final = 9_000_000_000_000
_TYPES: Final = {
    "stored": "stored",
    "removed": "removed",
    "cleared": "cleared",
    "BlockStored": "stored",
    "BlockRemoved": "removed",
    "AllBlocksCleared": "cleared",
}
_KNOWN: Final = frozenset(
    {
        *("event_id", "timestamp", "event_type", "type", "model_name", "block_size", "additional_salt", "lora_name"),
        *("tenant_id", "backend_id", "group_id", "medium", "dp_rank", "object_key", "seq_hashes", "block_hashes"),
        *("base_block_idx", "parent_hash", "token_ids", "parent_block_hash"),
    }
)
_MEDIA: Final = {"gpu": Tier.GPU, "hbm": Tier.GPU, "ssd": Tier.NVME, "nvme": Tier.NVME, "disk": Tier.NVME}


@dataclass(slots=True)
class _Publisher:
    """What one store has told in its present life."""

    life: Life = field(default_factory=Life)
    copies: Copies = field(default_factory=Copies)
    declared: set[NamespaceId] = field(default_factory=set)
    began_ns: int = 0


class _At(NamedTuple):
    """Where the rows of an event go."""

    decoded: Decoded
    part: Part
    state: _Publisher
    t_ns: int


class MooncakeEvents:
    """Decodes messages of any number of stores, told apart by their topics; used by one thread."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._publishers: defaultdict[str, _Publisher] = defaultdict(_Publisher)

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One line with one message. `sequence` is not used."""
        decoded = Decoded()
        try:
            envelope = read_envelope(value)
            t_ns, events, rank = _payload(envelope)
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        state = self._publishers[envelope.topic]
        judged = None if envelope.number is None else state.life.take(envelope.number, t_ns)
        if judged is not None and judged.arrival is Arrival.AGAIN:
            decoded.remarks["messages that came twice"] += 1
            return decoded
        if judged is not None and judged.arrival is Arrival.RESTARTED:
            state = self._publishers[envelope.topic] = _Publisher(life=state.life)
            decoded.remarks["restarts of a store"] += 1
        state.began_ns = state.began_ns or t_ns or self._source.number
        part = Part(Origin(envelope.topic, state.began_ns, rank))
        decoded.parts.append(part)
        if judged is not None and judged.missing:
            part.items.append(Lost(judged.missing))
            decoded.remarks["messages that the store dropped, by their numbers"] += judged.missing
        for number, event in enumerate(events):
            self._event(_At(decoded, part, state, t_ns), number, event)
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _event(self, at: _At, number: int, value: object) -> None:
        """One event; what is wrong with it stays with it."""
        rows = Part(at.part.origin)
        try:
            fields = object_of(value, "an event")
            told = fields.get("event_type") or fields.get("type")
            name = _TYPES.get(told) if isinstance(told, str) else None
            if name is None:
                called = told[:80] if isinstance(told, str) else shown(told)
                at.decoded.unknown[f"event {called}"] += 1
                at.part.add(protocol_error(at.t_ns, f"unknown event {called}"), redacted(self._source.key, fields))
                return
            at.decoded.seen[name] += 1
            own_ns = _ms_ns(fields.get("timestamp"))
            self._known(at._replace(part=rows, t_ns=at.t_ns if own_ns is None else own_ns), name, fields)
        except ForeignInvalid as error:
            at.decoded.quarantine(at.part, at.t_ns, Bad(f"event {number}", str(error)))
            return
        strange = {one: fields[one] for one in fields if one not in _KNOWN}
        at.decoded.unknown.update(f"field {name}.{one}" for one in strange)
        if strange:
            at.part.add(protocol_error(at.t_ns, f"unknown fields of {name}"), redacted(self._source.key, strange))
        at.part.items.extend(rows.items)

    def _known(self, at: _At, name: str, fields: Fields) -> None:
        """An event of a known type."""
        tier = _tier(fields.get("medium"))
        if name == "cleared":
            at.state.copies.clear(tier)
            at.part.add(TierCleared(t_ns=at.t_ns, tier=tier, reason=ClearReason.RESET))
            return
        told = fields.get("seq_hashes") or fields.get("block_hashes")
        if not isinstance(told, list):
            raise ForeignInvalid(f"seq_hashes is {shown(told)} where a list is due")
        blocks = [block_of(self._source.key, one) for one in told]
        group = whole(fields, "group_id") or 0
        if name == "stored":
            self._stored(at, fields, [Name(tier, block, group) for block in blocks])
            return
        for block in blocks:
            copy = at.state.copies.remove(Name(tier, block, group))
            if copy is None:
                at.decoded.remarks["removals of blocks that were stored before the first record"] += 1
            slot = copy.slot if copy is not None else at.state.copies.passing_place(tier)
            ns = copy.ns if copy is not None else None
            at.part.add(Evicted(t_ns=at.t_ns, block=block, tier=tier, slot=slot, reason=EvictReason.CAPACITY, ns=ns))

    def _stored(self, at: _At, fields: Fields, names: list[Name]) -> None:
        """A chain of blocks, one row each."""
        told = fields.get("parent_hash") or fields.get("parent_block_hash")
        parent = None if told is None else block_of(self._source.key, told)
        size, base = whole(fields, "block_size"), whole(fields, "base_block_idx")
        ns = self._namespace(at, fields)
        for index, name in enumerate(names):
            start = (base + index) * size if base is not None and size else None
            copy = at.state.copies.add(name, ns)
            made = BlockCreated(
                t_ns=at.t_ns,
                block=name.block,
                tier=name.tier,
                slot=copy.slot,
                ns=ns,
                parent=parent,
                tokens=size or None,
                token_start=start if start is not None and start <= U32 else None,
            )
            at.part.add(made)
            parent = name.block

    def _namespace(self, at: _At, fields: Fields) -> NamespaceId:
        """Whose the blocks are, declared at its first use."""
        namespace = Namespace(
            tenant=text_of(fields, "tenant_id") or "",
            model=text_of(fields, "model_name") or "",
            lora=text_of(fields, "lora_name") or "",
            salt=text_of(fields, "additional_salt") or "",
        )
        ns = namespace_id(self._source.key, namespace)
        if ns not in at.state.declared:
            at.state.declared.add(ns)
            at.part.add(NamespaceDeclared(t_ns=at.t_ns, ns=ns, text=namespace_text(self._source.key, namespace)))
        return ns


def _payload(envelope: Envelope) -> tuple[int, list[object], int]:
    """Time, events and rank of a message.

    Raises:
        ForeignInvalid: it is no list of those.
    """
    value: object = envelope.payload
    if isinstance(value, bytes):
        try:
            value = msgspec.msgpack.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ForeignInvalid(f"no MessagePack: {str(error)[:80]}") from error
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], list):  # noqa: PLR2004 - time and events
        raise ForeignInvalid(f"payload is {shown(value)} where time and a list of events are due")
    t_ns = _ms_ns(value[0])
    if t_ns is None:
        raise ForeignInvalid(f"time of the payload is {shown(value[0])} where milliseconds since 1970 are due")
    rank = whole({"dp_rank": value[2]}, "dp_rank", LARGEST_RANK) if len(value) > 2 else 0  # noqa: PLR2004 - then the rank
    return t_ns, value[1], rank or 0


def _ms_ns(told: object) -> int | None:
    """Milliseconds since 1970 as nanoseconds; None where they are none."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= _LATEST_MS:
        return None
    return round(told * _MS_NS) if isinstance(told, int) else round(told) * _MS_NS


def _tier(medium: object) -> Tier:
    """The tier of a medium; a pool of memory that others reach is remote, as is what no medium is told of."""
    return _MEDIA.get(medium.lower(), Tier.REMOTE) if isinstance(medium, str) else Tier.REMOTE
