"""KV cache events of TensorRT-LLM as events of ours, all three generations of their envelope.

What they tell: blocks stored, moved between levels, removed. They tell no time, no request, no duration and no end of a copy:
`updated` is written when a copy is ordered. So a move stands as one op without parts, at the moment at which it was told.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    BlockCreated,
    CounterSampled,
    Evicted,
    ManifestDeclared,
    NamespaceDeclared,
    SwapInLoaded,
    SwapOutWritten,
)
from kvtrail_schema.identity import BlockId, Namespace, NamespaceId, OpId, namespace_id, namespace_text
from kvtrail_schema.reasons import EvictReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.copies import Copies, Name
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U32, U64, Fields, list_of, needed, object_of, text_of, whole
from kvtrail_agent.importers.hashes import redacted, shown
from kvtrail_agent.importers.lives import Arrival, Life
from kvtrail_agent.importers.trtllm_blocks import Levels, diff_of, group_of, stored_block, trtllm_block
from kvtrail_agent.importers.vllm_wire import LARGEST_RANK

_ENVELOPE: Final = frozenset({"event_id", "data", "window_size", "attention_dp_rank", "hash_algo", "layer_group_id", "recv_ns"})
_KNOWN: Final = {
    "created": frozenset({"type", "num_blocks_per_cache_level"}),
    "stored": frozenset({"type", "parent_hash", "blocks"}),
    "removed": frozenset({"type", "block_hashes"}),
    "updated": frozenset({"type", "block_hash", "cache_level", "priority"}),
}
_LARGEST_LEVEL: Final = 15
_LARGEST_PRIORITY: Final = 100


@dataclass(slots=True)
class _RankState:
    """What one attention-parallel rank has told in its present life."""

    life: Life = field(default_factory=Life)
    copies: Copies = field(default_factory=Copies)
    declared: set[NamespaceId] = field(default_factory=set)
    lives: int = 0


class _Head(NamedTuple):
    """The envelope of an event, read."""

    envelope: Fields
    data: Fields
    rank: int
    event_id: int
    group: int
    t_ns: int


@dataclass(frozen=True, slots=True)
class _At:
    """Where the rows of an event go."""

    decoded: Decoded
    part: Part
    state: _RankState
    event_id: int
    group: int
    t_ns: int


class TrtllmEvents:
    """Decodes events in the order in which they were read; used by one thread. Never raises on bad input.

    Without a time beside an event (`recv_ns`, which our poller writes) its time is its number, in nanoseconds.
    """

    def __init__(self, key: bytes, number: int = 0, engine: str = "") -> None:
        self._key = key
        self._number = number
        self._engine = engine
        self._ranks: defaultdict[int, _RankState] = defaultdict(_RankState)
        self._count = 0
        self.levels = Levels()
        """Which tier a level is; set from the engine's statistics where they are at hand."""

    def decode(self, value: object) -> Decoded:
        """One event."""
        self._count += 1
        decoded = Decoded()
        try:
            head = _head(object_of(value, "an event"), self._count)
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        return self._judged(decoded, head)

    def resident(self, tier: Tier = Tier.GPU, rank: int = 0) -> frozenset[BlockId]:
        """The blocks that are in a tier, by what was told so far."""
        return self._ranks[rank].copies.blocks(tier)

    def _judged(self, decoded: Decoded, head: _Head) -> Decoded:
        """An event by its number. They are drained once, so a smaller one than the last is of a new life."""
        state = self._ranks[head.rank]
        judged = state.life.take(head.event_id, self._count)
        if judged.arrival is Arrival.RESTARTED:
            state = self._ranks[head.rank] = _RankState(life=state.life, lives=state.lives + 1)
            decoded.remarks["restarts of an engine"] += 1
        part = Part(Origin(self._engine, self._number + state.lives, head.rank))
        decoded.parts.append(part)
        missing = judged.missing if judged.arrival in {Arrival.NEXT, Arrival.AFTER_GAP} else head.event_id
        if missing:
            part.items.append(Lost(missing))
            decoded.remarks["events that the engine dropped, by their numbers"] += missing
        self._typed(_At(decoded, part, state, head.event_id, head.group, head.t_ns), head.envelope, head.data)
        return decoded

    def _typed(self, at: _At, envelope: Fields, data: Fields) -> None:
        """One event by its type; what is wrong with it stays with it."""
        name = data.get("type")
        known = _KNOWN.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or known is None:
            shown_name = name[:80] if isinstance(name, str) else shown(name)
            at.decoded.unknown[f"event {shown_name}"] += 1
            at.part.add(protocol_error(at.t_ns, f"unknown event {shown_name}"), redacted(self._key, data))
            return
        at.decoded.seen[name] += 1
        strange = {one: data[one] for one in data if one not in known} | {
            one: envelope[one] for one in envelope if one not in _ENVELOPE
        }
        at.decoded.unknown.update(f"field {name}.{one}" for one in strange)
        items = Part(at.part.origin)
        try:
            self._known(_At(at.decoded, items, at.state, at.event_id, at.group, at.t_ns), name, envelope, data)
        except ForeignInvalid as error:
            at.decoded.quarantine(at.part, at.t_ns, Bad(f"event {at.event_id} ({name})", str(error)))
            return
        for index, item in enumerate(items.items):
            at.part.items.append(item if index or isinstance(item, Lost) else item._replace(extra=redacted(self._key, strange)))

    def _known(self, at: _At, name: str, envelope: Fields, data: Fields) -> None:
        """An event of a known type."""
        if name == "stored":
            self._stored(at, data)
        elif name == "removed":
            self._removed(at, data)
        elif name == "updated":
            self._updated(at, data)
        else:
            self._created(at, envelope, data)

    def _created(self, at: _At, envelope: Fields, data: Fields) -> None:
        """The cache of a window or layer group was made: how many blocks each level has."""
        told = list_of(data, "num_blocks_per_cache_level")
        if not all(isinstance(count, int) and not isinstance(count, bool) for count in told):
            raise ForeignInvalid("num_blocks_per_cache_level has something that is no whole number")
        manifest = {
            "backend": "tensorrt-llm",
            "blocks_per_level": told,
            "tiers": [tier.name.lower() for tier in self.levels.tiers[: len(told)]],
            "window_size": whole(envelope, "window_size", least=-1),
            "layer_group_id": whole(envelope, "layer_group_id"),
            "hash_algo": text_of(envelope, "hash_algo"),
        }
        text = json.dumps({name: value for name, value in manifest.items() if value is not None})
        at.part.add(ManifestDeclared(t_ns=at.t_ns, text=text))

    def _stored(self, at: _At, data: Fields) -> None:
        """A chain of blocks, one row each."""
        blocks = [stored_block(self._key, one, self.levels) for one in list_of(data, "blocks")]
        told = data.get("parent_hash")
        parent = None if told is None else trtllm_block(self._key, told)
        for block in blocks:
            before = at.state.copies.find(Name(block.tier, parent, at.group)) if parent is not None else None
            ns = self._namespace(at, block.salt)
            start = 0 if parent is None else (before.end_tokens if before is not None else None)
            end = None if start is None or start + block.tokens > U32 else start + block.tokens
            copy = at.state.copies.add(Name(block.tier, block.block, at.group), ns, end)
            at.part.add(
                BlockCreated(
                    t_ns=at.t_ns,
                    block=block.block,
                    tier=block.tier,
                    slot=copy.slot,
                    ns=ns,
                    parent=parent,
                    tokens=block.tokens,
                    token_start=start,
                    priority=block.priority,
                )
            )
            parent = block.block

    def _namespace(self, at: _At, salt: str | None) -> NamespaceId:
        """The namespace of a cache salt, declared at its first use."""
        namespace = Namespace(tenant=salt or "")
        ns = namespace_id(self._key, namespace)
        if ns not in at.state.declared:
            at.state.declared.add(ns)
            at.part.add(NamespaceDeclared(t_ns=at.t_ns, ns=ns, text=namespace_text(self._key, namespace)))
        return ns

    def _removed(self, at: _At, data: Fields) -> None:
        """Blocks left the cache for good, from whichever level they were in."""
        for block in [trtllm_block(self._key, one) for one in list_of(data, "block_hashes")]:
            tier = self._tier_of(at, block)
            if tier is None:
                at.decoded.remarks["removals of blocks that were stored before the first record"] += 1
            self._leave(at, block, Tier.GPU if tier is None else tier, EvictReason.CAPACITY, None)

    def _updated(self, at: _At, data: Fields) -> None:
        """A block changed its level, its priority, or both."""
        block = trtllm_block(self._key, data.get("block_hash"))
        level, priority = diff_of(data, "cache_level", _LARGEST_LEVEL), diff_of(data, "priority", _LARGEST_PRIORITY)
        if level is not None:
            self._moved(at, block, self.levels.tier_of(level[0]), self.levels.tier_of(level[1]))
        if priority is not None:
            text = f"trtllm.block_priority.{block:016x}"
            at.part.add(CounterSampled(t_ns=at.t_ns, text=text, value=float(priority[1])))

    def _moved(self, at: _At, block: BlockId, src: Tier, dst: Tier) -> None:
        """A block is in another level now: the op that carried it, and the end of the copy that it left."""
        op = OpId(at.event_id + 1)
        held = at.state.copies.find(Name(src, block, at.group))
        ns, end = (held.ns, held.end_tokens) if held is not None else (None, None)
        slot = at.state.copies.add(Name(dst, block, at.group), ns, end).slot
        if dst > src:
            at.part.add(SwapOutWritten(t_ns=at.t_ns, op=op, src=src, dst=dst, block=block, slot=slot, ns=ns))
        else:
            at.part.add(SwapInLoaded(t_ns=at.t_ns, op=op, src=src, dst=dst, block=block, slot=slot, ns=ns))
        self._leave(at, block, src, EvictReason.DEMOTION, op)

    def _leave(self, at: _At, block: BlockId, tier: Tier, reason: EvictReason, op: OpId | None) -> None:
        """A copy left its place."""
        copy = at.state.copies.remove(Name(tier, block, at.group))
        slot = copy.slot if copy is not None else at.state.copies.passing_place(tier)
        ns = copy.ns if copy is not None else None
        at.part.add(Evicted(t_ns=at.t_ns, block=block, tier=tier, slot=slot, reason=reason, op=op, ns=ns))

    def _tier_of(self, at: _At, block: BlockId) -> Tier | None:
        """The level in which a block is, the deepest first; None where it was not told of."""
        for tier in reversed(self.levels.tiers):
            if at.state.copies.find(Name(tier, block, at.group)) is not None:
                return tier
        return None


def _head(envelope: Fields, count: int) -> _Head:
    """The envelope of any generation; without a time its place in its source stands for it.

    Raises:
        ForeignInvalid: a field of it has another form than in any of them.
    """
    return _Head(
        envelope,
        object_of(envelope.get("data"), "data"),
        whole(envelope, "attention_dp_rank", LARGEST_RANK) or 0,
        needed(envelope, "event_id", U64 - 1),
        group_of(envelope),
        whole(envelope, "recv_ns", 2**63 - 2) or count,
    )
