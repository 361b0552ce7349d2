"""LMCache's cache events (`CacheEventBatch`, as it sends them to Kafka, to a coordinator, or into a file) as events of ours.

They tell placement: what is stored where, what was deleted, how large a tier is. One time a batch, that of its sending; no
request, no duration. Numbers count from 1 within one incarnation of one instance; a batch may come more than once.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, CounterSampled, Evicted, NamespaceDeclared, TierDeclared
from kvtrail_schema.identity import BlockId, Namespace, NamespaceId, namespace_id, namespace_text
from kvtrail_schema.reasons import EvictReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.copies import Copies, Name
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U64, Fields, list_of, needed, object_of, seconds_ns, text_of, whole
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import block_of, redacted, shown
from kvtrail_agent.importers.lives import Arrival, Life

_KNOWN: Final = frozenset(
    {
        *("instance_id", "incarnation", "seq", "event_type", "tier", "backend", "entries", "shared", "ts"),
        *("capacity_bytes", "capacity_revision"),
    }
)
_KNOWN_ENTRY: Final = frozenset({"key", "size_bytes", "token_ids", "token_offset"})
_LOCAL: Final = frozenset({"fs", "disk", "local_disk", "nvme", "file", "gds", "nixl_posix", "raw_block"})
_LARGEST_GROUP: Final = 2**20


class _Key(NamedTuple):
    """What an entry is called by."""

    block: BlockId
    group: int
    namespace: Namespace


@dataclass(slots=True)
class _Instance:
    """What one incarnation of one instance has told."""

    life: Life = field(default_factory=Life)
    copies: Copies = field(default_factory=Copies)
    declared: set[NamespaceId] = field(default_factory=set)
    last_ns: int = 0


class _At(NamedTuple):
    """Where the rows of a batch go."""

    decoded: Decoded
    part: Part
    state: _Instance
    tier: Tier
    t_ns: int


class LmcacheBatches:
    """Decodes batches of any number of instances; used by one thread. Never raises on bad input."""

    def __init__(self, source: Source) -> None:
        self._key = source.key
        self._instances: defaultdict[tuple[str, int], _Instance] = defaultdict(_Instance)

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One record: `{"batches": [batch, …]}`, or one batch. `sequence` is not used: batches name their instance."""
        decoded = Decoded()
        batches = value.get("batches") if isinstance(value, dict) and "batches" in value else [value]
        if not isinstance(batches, list):
            decoded.bad.append(Bad("batches", f"{shown(batches)} where a list is due"))
            return decoded
        for number, batch in enumerate(batches):
            self._batch(decoded, number, batch)
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _batch(self, decoded: Decoded, number: int, value: object) -> None:
        """One batch in the order of its instance."""
        try:
            fields = object_of(value, "a batch")
            instance, incarnation = text_of(fields, "instance_id") or "", needed(fields, "incarnation", U64)
            seq = needed(fields, "seq", U64)
            state = self._instances[instance, incarnation]
        except ForeignInvalid as error:
            decoded.bad.append(Bad(f"batch {number}", str(error)))
            return
        judged = state.life.take_once(seq)
        if judged.arrival is Arrival.AGAIN:
            decoded.remarks["batches that came twice"] += 1
            return
        part = Part(Origin(instance, incarnation))
        decoded.parts.append(part)
        if judged.missing:
            part.items.append(Lost(judged.missing))
            decoded.remarks["batches that never came"] += judged.missing
        t_ns = seconds_ns(fields.get("ts"))
        # LMCache writes 0 where it does not know the time.
        state.last_ns = t_ns or state.last_ns
        self._typed(decoded, part, state, fields, seq)

    def _typed(self, decoded: Decoded, part: Part, state: _Instance, fields: Fields, seq: int) -> None:
        """One batch by its type; what is wrong with the batch as a whole is quarantined, entries are by themselves."""
        name, t_ns = fields.get("event_type"), state.last_ns
        strange = {one: value for one, value in fields.items() if one not in _KNOWN}
        decoded.unknown.update(f"field {one}" for one in strange)
        if not isinstance(name, str) or name not in {"store", "delete", "access", "config"}:
            called = name[:80] if isinstance(name, str) else shown(name)
            decoded.unknown[f"event {called}"] += 1
            part.add(protocol_error(t_ns, f"unknown event {called}"), redacted(self._key, fields))
            return
        decoded.seen[name] += 1
        if strange:
            part.add(protocol_error(t_ns, f"unknown fields of {name}"), redacted(self._key, strange))
        try:
            at = _At(decoded, part, state, tier_of(fields), t_ns)
            self._known(at, name, fields, seq)
        except ForeignInvalid as error:
            decoded.quarantine(part, t_ns, Bad(f"batch {seq} ({name})", str(error)))

    def _known(self, at: _At, name: str, fields: Fields, seq: int) -> None:
        """A batch of a known type."""
        if name == "config":
            capacity = needed(fields, "capacity_bytes", U64)
            backend = text_of(fields, "backend") or text_of(fields, "tier")
            at.part.add(TierDeclared(t_ns=at.t_ns, tier=at.tier, capacity_bytes=capacity, text=backend))
            return
        entries = list_of(fields, "entries")
        if name == "access":
            text = f"lmcache.accessed_keys.{at.tier.name.lower()}"
            at.part.add(CounterSampled(t_ns=at.t_ns, text=text, value=float(len(entries))))
            return
        at.decoded.seen[f"{name} entries"] += len(entries)
        for number, entry in enumerate(entries):
            try:
                self._entry(at, name, object_of(entry, "an entry"))
            except ForeignInvalid as error:
                at.decoded.quarantine(at.part, at.t_ns, Bad(f"batch {seq} ({name}), entry {number}", str(error)))

    def _entry(self, at: _At, name: str, entry: Fields) -> None:
        """One key that was stored or deleted."""
        key = self._key_of(object_of(entry.get("key"), "key"))
        strange = {one: value for one, value in entry.items() if one not in _KNOWN_ENTRY}
        at.decoded.unknown.update(f"field of an entry {one}" for one in strange)
        extra = redacted(self._key, strange)
        if name == "store":
            self._stored(at, entry, key, extra)
            return
        copy = at.state.copies.remove(Name(at.tier, key.block, key.group))
        if copy is None:
            at.decoded.remarks["deletions of keys that were stored before the first record"] += 1
        slot = copy.slot if copy is not None else at.state.copies.passing_place(at.tier)
        ns = namespace_id(self._key, key.namespace)
        gone = Evicted(t_ns=at.t_ns, block=key.block, tier=at.tier, slot=slot, reason=EvictReason.CAPACITY, ns=ns)
        at.part.add(gone, extra)

    def _stored(self, at: _At, entry: Fields, key: _Key, extra: str | None) -> None:
        """A key is there; one that was there already is the same copy once more, and told as remark."""
        size, start = whole(entry, "size_bytes", U64), whole(entry, "token_offset", least=-1)
        told = entry.get("token_ids")
        tokens = len(told) if isinstance(told, list) and told else None
        name = Name(at.tier, key.block, key.group)
        if at.state.copies.find(name) is not None:
            at.decoded.remarks["keys stored again while they were there"] += 1
            at.state.copies.remove(name)
        ns = self._declared(at, key.namespace)
        copy = at.state.copies.add(name, ns)
        made = BlockCreated(
            t_ns=at.t_ns,
            block=key.block,
            tier=at.tier,
            slot=copy.slot,
            ns=ns,
            tokens=tokens,
            token_start=start if start is not None and start >= 0 else None,
            bytes=size,
        )
        at.part.add(made, extra)

    def _key_of(self, key: Fields) -> _Key:
        """The name of a chunk: its hash, the rank and group whose part of it this is, and whose it is."""
        digits = text_of(key, "chunk_hash_hex") or ""
        try:
            digest = bytes.fromhex(digits.removeprefix("0x"))
        except ValueError:
            digest = b""
        group = ((whole(key, "kv_rank", 2**32) or 0) << 20) | (whole(key, "object_group_id", _LARGEST_GROUP) or 0)
        namespace = Namespace(tenant=text_of(key, "cache_salt") or "", model=text_of(key, "model_name") or "")
        return _Key(block_of(self._key, digest), group, namespace)

    def _declared(self, at: _At, namespace: Namespace) -> NamespaceId:
        """The id of a namespace, declared at its first use."""
        ns = namespace_id(self._key, namespace)
        if ns not in at.state.declared:
            at.state.declared.add(ns)
            at.part.add(NamespaceDeclared(t_ns=at.t_ns, ns=ns, text=namespace_text(self._key, namespace)))
        return ns


def tier_of(fields: Fields) -> Tier:
    """The tier of a batch: L1 is host memory; L2 is by its backend a local disk or something that others reach as well.

    Raises:
        ForeignInvalid: it is neither L1 nor L2.
    """
    match fields.get("tier"):
        case "l1":
            return Tier.HOST
        case "l2":
            return l2_tier(text_of(fields, "backend") or "", is_shared=fields.get("shared") is True)
        case other:
            raise ForeignInvalid(f"tier is {other[:20] if isinstance(other, str) else shown(other)}, neither l1 nor l2")


def l2_tier(backend: str, *, is_shared: bool = False) -> Tier:
    """The tier of an L2 backend by its name."""
    return Tier.NVME if backend.lower() in _LOCAL and not is_shared else Tier.REMOTE
