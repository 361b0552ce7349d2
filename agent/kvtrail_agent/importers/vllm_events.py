"""KV events of vLLM and SGLang as events of ours: `block_created`, `evicted`, `tier_cleared`.

Runs in a relay or an import, never in an engine. About 10 µs a block. What the stream does not tell is left out, and stands in
docs/engines/vllm.md: no request, no duration, no bytes, no reason of a removal (`capacity` stands for all of them).
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Evicted, NamespaceDeclared, TierCleared
from kvtrail_schema.identity import BlockId, NamespaceId, namespace_id, namespace_text
from kvtrail_schema.reasons import ClearReason, EvictReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.copies import Copies, Name
from kvtrail_agent.importers.decoded import HERE, Bad, Decoded, Origin, Part, Row, protocol_error
from kvtrail_agent.importers.hashes import block_of, redacted, shown
from kvtrail_agent.importers.vllm_tenants import lora_in, salt_in, vllm_namespace
from kvtrail_agent.importers.vllm_tiers import tier_of
from kvtrail_agent.importers.vllm_wire import KNOWN_FIELDS, Dialect, Unread, WireBatch, WireEvent, read_payload

_LARGEST_TOKENS: Final = 2**32 - 2
_CLEARED: Final = {Dialect.VLLM: (Tier.GPU,), Dialect.SGLANG: (Tier.GPU, Tier.HOST)}
"""What `AllBlocksCleared` empties: vLLM's prefix cache is on the GPU; SGLang's tree goes with its host pool."""


@dataclass(slots=True)
class _RankState:
    """What one rank has told so far."""

    copies: Copies = field(default_factory=Copies)
    declared: set[NamespaceId] = field(default_factory=set)
    last_ns: int = 0


class _At(NamedTuple):
    """Where the rows of an event go: the answer, the stream's part of it, the rank's state, the event's place and time."""

    decoded: Decoded
    part: Part
    state: _RankState
    number: int
    t_ns: int


class VllmEvents:
    """Decodes the payloads of one publisher, in their order; used by one thread.

    Promises: never raises on any bytes; what it cannot read is in `bad`, and as a row in the stream; the same payloads give the
    same rows. Memory grows with the copies that are told of and not removed.
    """

    def __init__(self, key: bytes, dialect: Dialect = Dialect.VLLM) -> None:
        self._key = key
        self._dialect = dialect
        self._ranks: defaultdict[int, _RankState] = defaultdict(_RankState)

    def decode(self, payload: bytes, origin: Origin = HERE) -> Decoded:
        """One payload: the third frame of a message. The rank is the payload's own, all else of the origin is kept."""
        try:
            batch = read_payload(payload, self._dialect)
        except ForeignInvalid as error:
            return self._unreadable(origin, Bad("payload", str(error)))
        return self.decode_batch(batch, origin)

    def decode_batch(self, batch: WireBatch, origin: Origin = HERE) -> Decoded:
        """One batch that was read already."""
        decoded, state = Decoded(), self._ranks[batch.rank]
        part = Part(origin._replace(rank=batch.rank))
        decoded.parts.append(part)
        if batch.ts_ns is None:
            decoded.quarantine(part, state.last_ns, Bad("ts", "no time in seconds since 1970; the one before stands"))
        state.last_ns = state.last_ns if batch.ts_ns is None else batch.ts_ns
        if batch.beyond:
            decoded.unknown["fields of a batch beyond its rank"] += len(batch.beyond)
        for number, event in enumerate(batch.events):
            self._event(_At(decoded, part, state, number, state.last_ns), event)
        return decoded

    def restart(self, rank: int | None = None) -> None:
        """The engine began anew (one rank, or all): nothing that it told before is there."""
        if rank is None:
            self._ranks.clear()
        else:
            self._ranks.pop(rank, None)

    def resident(self, tier: Tier = Tier.GPU, rank: int = 0) -> frozenset[BlockId]:
        """The blocks that are in a tier, by what was told so far."""
        return self._ranks[rank].copies.blocks(tier)

    def _unreadable(self, origin: Origin, bad: Bad) -> Decoded:
        """A payload of which nothing can be told."""
        decoded, part = Decoded(), Part(origin)
        decoded.parts.append(part)
        decoded.quarantine(part, self._ranks[origin.rank].last_ns, bad)
        return decoded

    def _event(self, at: _At, event: WireEvent | Unread) -> None:
        """One event; what is wrong with it stays with it."""
        if isinstance(event, Unread):
            at.decoded.quarantine(at.part, at.t_ns, event.bad)
            return
        at.decoded.seen[event.name] += 1
        known = KNOWN_FIELDS.get(event.name)
        if known is None:
            at.decoded.unknown[f"event {event.name}"] += 1
            at.part.add(protocol_error(at.t_ns, f"unknown event {event.name}"), redacted(self._key, event.fields))
            return
        strange = {name: value for name, value in event.fields.items() if name not in known}
        at.decoded.unknown.update(f"field {event.name}.{name}" for name in strange)
        first = len(at.part.items)
        try:
            self._known(at, event)
        except ForeignInvalid as error:
            del at.part.items[first:]
            at.decoded.quarantine(at.part, at.t_ns, Bad(f"event {at.number} ({event.name})", str(error)))
        if strange and first < len(at.part.items):
            item = at.part.items[first]
            at.part.items[first] = Row(item.event, redacted(self._key, strange)) if isinstance(item, Row) else item

    def _known(self, at: _At, event: WireEvent) -> None:
        """An event of a known name."""
        match event.name:
            case "BlockStored":
                self._stored(at, event.fields)
            case "BlockRemoved":
                self._removed(at, event.fields)
            case _:
                for tier in _CLEARED[self._dialect]:
                    at.state.copies.clear(tier)
                    at.part.add(TierCleared(t_ns=at.t_ns, tier=tier, reason=ClearReason.RESET))

    def _stored(self, at: _At, fields: dict[str, object]) -> None:
        """Blocks that became findable; one row each."""
        hashes = [block_of(self._key, one) for one in _list(fields, "block_hashes")]
        tier, group = tier_of(fields.get("medium"), fields.get("locality")), _number(fields, "group_idx")
        block_tokens = _number(fields, "block_size")
        tokens = len(_list(fields, "token_ids")) if fields.get("token_ids") is not None else 0
        parent = self._parent(fields, block_tokens)
        ns, start = self._prefix(at, fields, parent, Name(tier, parent, group) if parent is not None else None)
        for index, block in enumerate(hashes):
            size = min(block_tokens, tokens - index * block_tokens) if tokens else block_tokens
            size = max(size, 0)
            end = None if start is None or not size else start + size
            copy = at.state.copies.add(Name(tier, block, group), ns, end)
            at.part.add(
                BlockCreated(
                    t_ns=at.t_ns,
                    block=block,
                    tier=tier,
                    slot=copy.slot,
                    ns=ns,
                    parent=parent,
                    tokens=size or None,
                    token_start=start if size and end is not None and end <= _LARGEST_TOKENS else None,
                )
            )
            parent, start = block, end

    def _parent(self, fields: dict[str, object], block_tokens: int) -> BlockId | None:
        """The block before; stores outside the engine write 0 where they do not know it."""
        told = fields.get("parent_block_hash")
        return None if told is None or (told == 0 and not block_tokens) else block_of(self._key, told)

    def _prefix(
        self, at: _At, fields: dict[str, object], parent: BlockId | None, name: Name | None
    ) -> tuple[NamespaceId | None, int | None]:
        """Whose the blocks are, and at which token they begin: the first block of a prompt tells, else the parent's copy."""
        lora = lora_in(fields)
        salt = salt_in(fields, lora)
        before = at.state.copies.find(name) if name is not None else None
        if parent is not None and salt is None:
            return (before.ns, before.end_tokens) if before is not None else (None, None)
        namespace = vllm_namespace(salt, lora)
        ns = namespace_id(self._key, namespace)
        if ns not in at.state.declared:
            at.state.declared.add(ns)
            at.part.add(NamespaceDeclared(t_ns=at.t_ns, ns=ns, text=namespace_text(self._key, namespace)))
        has_tokens = bool(fields.get("token_ids")) or bool(fields.get("block_size"))
        start = 0 if parent is None and has_tokens else (before.end_tokens if before is not None else None)
        return ns, start

    def _removed(self, at: _At, fields: dict[str, object]) -> None:
        """Blocks that are findable no more; one row each."""
        hashes = [block_of(self._key, one) for one in _list(fields, "block_hashes")]
        tier, group = tier_of(fields.get("medium"), fields.get("locality")), _number(fields, "group_idx")
        for block in hashes:
            copy = at.state.copies.remove(Name(tier, block, group))
            if copy is None:
                at.decoded.remarks["removals of blocks that were stored before the first record"] += 1
            slot = copy.slot if copy is not None else at.state.copies.passing_place(tier)
            ns = copy.ns if copy is not None else None
            at.part.add(Evicted(t_ns=at.t_ns, block=block, tier=tier, slot=slot, reason=EvictReason.CAPACITY, ns=ns))


def _list(fields: dict[str, object], name: str) -> list[object]:
    """A field that is a list.

    Raises:
        ForeignInvalid: it is none.
    """
    value = fields.get(name)
    if isinstance(value, list):
        return value
    raise ForeignInvalid(f"{name} is {shown(value)} where a list is due")


def _number(fields: dict[str, object], name: str) -> int:
    """A field that is a small whole number; 0 where it is absent. Raises as `_list`."""
    value = fields.get(name)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_TOKENS:
        return value
    raise ForeignInvalid(f"{name} is {shown(value)}")
