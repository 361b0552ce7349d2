"""KV events of Dynamo's router, as JSON, as events of ours. They tell placement by worker, in order; no time, no duration."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Evicted, TierCleared
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import ClearReason, EvictReason

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.copies import Copies, Name
from kvtrail_agent.importers.decoded import Bad, Decoded, Lost, Origin, Part, protocol_error
from kvtrail_agent.importers.fields import U64, Fields, list_of, needed, object_of, whole
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import block_of, redacted, shown
from kvtrail_agent.importers.lives import Arrival, Life
from kvtrail_agent.importers.vllm_wire import LARGEST_RANK

_TIERS: Final = {"device": Tier.GPU, "host_pinned": Tier.HOST, "disk": Tier.NVME, "external": Tier.REMOTE}
_ENVELOPE: Final = frozenset({"worker_id", "storage_tier", "residency_domain", "event"})
_EVENT: Final = frozenset({"event_id", "data", "dp_rank"})
_DATA: Final = frozenset({"parent_hash", "start_position", "blocks", "block_hashes"})


class _Head(NamedTuple):
    """One event, its envelope read."""

    worker: int
    rank: int
    tier: Tier
    event_id: int
    data: object
    strange: Fields


@dataclass(slots=True)
class _Worker:
    """What one rank of one worker has told in its present life."""

    life: Life = field(default_factory=Life)
    copies: Copies = field(default_factory=Copies)
    lives: int = 0


class _At(NamedTuple):
    """Where the rows of an event go."""

    decoded: Decoded
    part: Part
    state: _Worker
    tier: Tier
    t_ns: int


class DynamoEvents:
    """Decodes router events of any number of workers; used by one thread. An event's time is its place among all of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._workers: defaultdict[tuple[int, int], _Worker] = defaultdict(_Worker)
        self._count = 0

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One `RouterEvent`. `sequence` is not used: events name their worker."""
        self._count += 1
        decoded = Decoded()
        try:
            head = _head(object_of(value, "an event"))
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        state = self._workers[head.worker, head.rank]
        judged = state.life.take(head.event_id, self._count)
        if judged.arrival is Arrival.RESTARTED:
            state = self._workers[head.worker, head.rank] = _Worker(life=state.life, lives=state.lives + 1)
            decoded.remarks["restarts of a worker"] += 1
        part = Part(Origin(f"worker-{head.worker}", self._source.number + state.lives, head.rank))
        decoded.parts.append(part)
        if judged.missing:
            part.items.append(Lost(judged.missing))
            decoded.remarks["events that never came, by their numbers"] += judged.missing
        self._typed(_At(decoded, part, state, head.tier, self._count), head)
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _typed(self, at: _At, head: _Head) -> None:
        """One event by its type; what is wrong with it stays with it."""
        data = {head.data: {}} if isinstance(head.data, str) else head.data
        if not isinstance(data, dict) or len(data) != 1:
            at.decoded.quarantine(at.part, at.t_ns, Bad(f"event {head.event_id}", f"data is {shown(head.data)}"))
            return
        name, told = next(iter(data.items()))
        if name not in {"stored", "removed", "cleared"}:
            called = name[:80] if isinstance(name, str) else shown(name)
            at.decoded.unknown[f"event {called}"] += 1
            at.part.add(protocol_error(at.t_ns, f"unknown event {called}"), redacted(self._source.key, {"data": told}))
            return
        at.decoded.seen[name] += 1
        rows = Part(at.part.origin)
        try:
            fields = object_of(told, name) if name != "cleared" else {}
            self._known(at._replace(part=rows), name, fields)
        except ForeignInvalid as error:
            at.decoded.quarantine(at.part, at.t_ns, Bad(f"event {head.event_id} ({name})", str(error)))
            return
        strange = head.strange | {one: fields[one] for one in fields if one not in _DATA}
        at.decoded.unknown.update(f"field {one}" for one in strange)
        if strange:
            at.part.add(protocol_error(at.t_ns, f"unknown fields of {name}"), redacted(self._source.key, strange))
        at.part.items.extend(rows.items)

    def _known(self, at: _At, name: str, fields: Fields) -> None:
        """An event of a known type."""
        if name == "cleared":
            at.state.copies.clear(at.tier)
            at.part.add(TierCleared(t_ns=at.t_ns, tier=at.tier, reason=ClearReason.RESET))
        elif name == "stored":
            self._stored(at, fields)
        else:
            for block in [block_of(self._source.key, one) for one in list_of(fields, "block_hashes")]:
                self._leave(at, block)

    def _stored(self, at: _At, fields: Fields) -> None:
        """A chain of blocks, one row each."""
        told = fields.get("parent_hash")
        parent = None if told is None else block_of(self._source.key, told)
        blocks = [object_of(one, "a block") for one in list_of(fields, "blocks")]
        for block in [block_of(self._source.key, one.get("block_hash")) for one in blocks]:
            copy = at.state.copies.add(Name(at.tier, block))
            at.part.add(BlockCreated(t_ns=at.t_ns, block=block, tier=at.tier, slot=copy.slot, parent=parent))
            parent = block

    def _leave(self, at: _At, block: BlockId) -> None:
        """A copy left its place."""
        copy = at.state.copies.remove(Name(at.tier, block))
        if copy is None:
            at.decoded.remarks["removals of blocks that were stored before the first record"] += 1
        slot = copy.slot if copy is not None else at.state.copies.passing_place(at.tier)
        at.part.add(Evicted(t_ns=at.t_ns, block=block, tier=at.tier, slot=slot, reason=EvictReason.CAPACITY))


def _head(envelope: Fields) -> _Head:
    """The envelope of an event, or an event without one, as a worker itself publishes it.

    Raises:
        ForeignInvalid: it is neither.
    """
    event = object_of(envelope["event"], "event") if "event" in envelope else envelope
    told = envelope.get("storage_tier", "device")
    tier = _TIERS.get(told) if isinstance(told, str) else None
    if tier is None:
        raise ForeignInvalid(f"storage_tier is {told[:20] if isinstance(told, str) else shown(told)}")
    strange = {name: event[name] for name in event if name not in _EVENT | _ENVELOPE}
    if event is not envelope:
        strange |= {name: envelope[name] for name in envelope if name not in _ENVELOPE}
    rank = whole(event, "dp_rank", LARGEST_RANK) or 0
    return _Head(whole(envelope, "worker_id", U64) or 0, rank, tier, needed(event, "event_id", U64), event.get("data"), strange)
