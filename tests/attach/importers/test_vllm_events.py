"""KV events of vLLM and SGLang become ours, whatever generation wrote them, and whatever is wrong with some of them."""

from dataclasses import asdict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent.importers.decoded import Decoded
from kvtrail_agent.importers.hashes import block_of
from kvtrail_agent.importers.vllm_events import VllmEvents
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Error, Evicted, NamespaceDeclared, TierCleared
from kvtrail_schema.reasons import ClearReason, ErrorReason

from tests.attach.importers.payloads import GENERATIONS, KEY, TS_NS, payload, removed, stored


def created(decoded: Decoded) -> list[BlockCreated]:
    """The blocks that were created, in their order."""
    return [row.event for row in decoded.rows if isinstance(row.event, BlockCreated)]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_generations(generation: str) -> None:
    """One store of two blocks gives the same two events, whichever generation wrote it, and nothing of it is unknown."""
    decoded = VllmEvents(KEY).decode(payload(GENERATIONS[generation]))
    first, second = created(decoded)

    assert (block_of(KEY, 1), None, 0, 4, 0) == (first.block, first.parent, first.slot, first.tokens, first.token_start)
    assert (block_of(KEY, 2), first.block, 1, 4, 4) == (
        *(second.block, second.parent, second.slot, second.tokens, second.token_start),
    )
    assert (TS_NS, Tier.GPU, first.ns) == (first.t_ns, first.tier, second.ns)
    assert ({"BlockStored": 1}, {}, []) == (decoded.seen, decoded.unknown, decoded.bad)


def test_a_negative_hash_is_the_same_number() -> None:
    """SGLang writes hashes as signed numbers: the same 64 bits are the same block."""
    assert block_of(KEY, 2**64 - 5) == block_of(KEY, -5)


def test_a_removal_ends_the_copy_that_was_stored() -> None:
    """The eviction names block, tier, place and namespace of the creation; the place serves the next block."""
    events = VllmEvents(KEY)
    (first,) = created(events.decode(payload(stored(1))))
    (gone,) = [row.event for row in events.decode(payload(removed(1))).rows]
    (second,) = created(events.decode(payload(stored(2))))

    assert isinstance(gone, Evicted)
    assert (first.block, first.tier, first.slot, first.ns) == (gone.block, gone.tier, gone.slot, gone.ns)
    assert first.slot == second.slot


def test_two_copies_of_one_block() -> None:
    """An engine tells a block twice when two requests computed it side by side: two copies, each removed by itself."""
    events = VllmEvents(KEY)
    decoded = events.decode(payload(stored(1), stored(1), removed(1)))

    assert [0, 1] == [one.slot for one in created(decoded)]
    assert frozenset({block_of(KEY, 1)}) == events.resident()

    events.decode(payload(removed(1)))

    assert frozenset() == events.resident()


def test_removal_of_what_nobody_saw_come() -> None:
    """A file that begins in the middle: the removal is kept, and said to be of something older."""
    decoded = VllmEvents(KEY).decode(payload(removed(9)))

    assert [block_of(KEY, 9)] == [row.event.block for row in decoded.rows if isinstance(row.event, Evicted)]
    assert {"removals of blocks that were stored before the first record": 1} == decoded.remarks


@pytest.mark.parametrize(
    ("medium", "fields", "tier"),
    [
        (None, {}, Tier.GPU),
        ("CPU", {}, Tier.HOST),
        ("CPU_PINNED", {}, Tier.HOST),
        ("DISK", {}, Tier.NVME),
        ("STORAGE", {"locality": "LOCAL"}, Tier.NVME),
        ("STORAGE", {"locality": "REMOTE"}, Tier.REMOTE),
        ("FS", {}, Tier.NVME),
        ("OBJ", {}, Tier.REMOTE),
        ("EXTERNAL", {}, Tier.REMOTE),
        ("SHARED_STORAGE", {}, Tier.REMOTE),
    ],
)
def test_media(medium: str | None, fields: dict[str, object], tier: Tier) -> None:
    """Every medium that an engine names is a tier; storage elsewhere is remote."""
    decoded = VllmEvents(KEY).decode(payload(stored(1) | fields | {"medium": medium}))

    assert [tier] == [one.tier for one in created(decoded)]


def test_tenants_by_cache_salt() -> None:
    """Prompts with different salts have different namespaces, told on the first block and kept for those behind it."""
    events = VllmEvents(KEY)
    salted = events.decode(payload(stored(1, 2, extra_keys=[["tenant-a"], None])))
    later = events.decode(payload(stored(3, parent=2)))
    plain = events.decode(payload(stored(4)))
    with_lora = VllmEvents(KEY).decode(payload(stored(1, lora_name="tenant-a", extra_keys=[["tenant-a"]])))
    sglang = VllmEvents(KEY, Dialect.SGLANG).decode(payload(stored(1, cache_salt="tenant-a")))
    (ns,) = {one.ns for one in [*created(salted), *created(later), *created(sglang)]}
    declared = [row.event for row in salted.rows if isinstance(row.event, NamespaceDeclared)]

    assert [ns] == [one.ns for one in declared]
    assert 3 == len({ns, created(plain)[0].ns, created(with_lora)[0].ns})
    assert "tenant-a" not in repr([asdict_of(salted), asdict_of(sglang), asdict_of(with_lora)])


def asdict_of(decoded: Decoded) -> dict[str, object]:
    """All of an answer."""
    return asdict(decoded)


@pytest.mark.parametrize(
    ("dialect", "tiers"), [(Dialect.VLLM, [Tier.GPU]), (Dialect.SGLANG, [Tier.GPU, Tier.HOST])], ids=["vllm", "sglang"]
)
@pytest.mark.parametrize("event", [{"type": "AllBlocksCleared"}, ["AllBlocksCleared"]], ids=["map", "list"])
def test_clear(event: object, dialect: Dialect, tiers: list[Tier]) -> None:
    """A clear empties the tiers that the engine's own reset empties, and no removal of what was there is awaited."""
    events = VllmEvents(KEY, dialect)
    decoded = events.decode(payload(stored(1), event))

    assert [(tier, ClearReason.RESET) for tier in tiers] == [
        (row.event.tier, row.event.reason) for row in decoded.rows if isinstance(row.event, TierCleared)
    ]
    assert frozenset() == events.resident()


def test_unknown_events_and_fields_are_kept() -> None:
    """What a newer engine adds is counted by name and kept: an event as a row, fields beside theirs; no text in clear."""
    note = {"type": "AgentNote", "who": "user@example.org", "size": 7, "tokens": [1, 2, 3]}
    decoded = VllmEvents(KEY).decode(payload(note, stored(1, temperature=3, mood="secret")))
    unknown, _, block = decoded.rows

    assert isinstance(unknown.event, Error)
    assert (ErrorReason.PROTOCOL, "unknown event AgentNote") == (unknown.event.reason, unknown.event.text)
    assert {"size": 7, "tokens": "a list of 3"}.items() <= msgspec.json.decode(unknown.extra or "").items()
    assert {"event AgentNote": 1, "field BlockStored.temperature": 1, "field BlockStored.mood": 1} == decoded.unknown
    assert 3 == msgspec.json.decode((decoded.rows[1].extra or block.extra) or "")["temperature"]
    assert not {"user@example.org", "secret"} & set(repr(decoded.rows).replace("'", " ").replace('"', " ").split())


@pytest.mark.parametrize(
    "broken",
    [
        7,
        None,
        [],
        {},
        {"type": 3},
        ["BlockStored"],
        ["BlockStored", "no list"],
        stored("a text"),
        stored(1.5),
        stored(2**64 - 1, b""),
        stored(1, parent="x"),
        stored(1, medium="TAPE"),
        stored(1, block_size=-1),
        stored(1, extra_keys=3),
        removed({}),
    ],
    ids=repr,
)
def test_broken_events_are_quarantined_one_by_one(broken: object) -> None:
    """One event that cannot be read is told where it stood; the events around it are there."""
    decoded = VllmEvents(KEY).decode(payload(stored(1), broken, stored(2)))

    assert [block_of(KEY, 1), block_of(KEY, 2)] == [one.block for one in created(decoded)]
    assert 1 == len(decoded.bad)
    assert decoded.bad[0].place.startswith("event 1")
    assert 1 == len([row for row in decoded.rows if isinstance(row.event, Error)])


def test_broken_text_in_one_event() -> None:
    """A text that is no UTF-8 spoils its own event alone."""
    whole = payload(stored(1), stored(2, medium="XYZW"), stored(3))
    decoded = VllmEvents(KEY).decode(whole.replace(b"XYZW", b"\xff\xfe\xff\xfe"))

    assert [block_of(KEY, 1), block_of(KEY, 3)] == [one.block for one in created(decoded)]
    assert ["event 1"] == [bad.place for bad in decoded.bad]


@pytest.mark.parametrize("raw", [b"", b"\x93", b"{}", payload(rank=-1), payload(rank="x"), msgspec.msgpack.encode([1.0])])
def test_payloads_that_are_none(raw: bytes) -> None:
    """What is no batch is one quarantined payload, and the decoder goes on."""
    events = VllmEvents(KEY)
    decoded = events.decode(raw)

    assert ["payload"] == [bad.place for bad in decoded.bad]
    assert 1 == len(created(events.decode(payload(stored(1)))))


def test_a_time_that_is_none() -> None:
    """A batch whose time cannot be read keeps its events, at the time of the batch before."""
    events = VllmEvents(KEY)
    events.decode(payload(stored(1)))
    decoded = events.decode(payload(stored(2), ts="noon"))

    assert [TS_NS] == [one.t_ns for one in created(decoded)]
    assert ["ts"] == [bad.place for bad in decoded.bad]


def test_a_restart_forgets() -> None:
    """After a restart nothing is resident that was told before it."""
    events = VllmEvents(KEY)
    events.decode(payload(stored(1)))
    events.restart(0)

    assert frozenset() == events.resident()


@given(st.binary(max_size=200))
@settings(max_examples=80)
def test_any_bytes(raw: bytes) -> None:
    """No bytes make it raise; what they hold is in rows, or in the quarantine."""
    decoded = VllmEvents(KEY).decode(raw)

    assert len(decoded.bad) + len(decoded.rows) or raw


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5) | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = st.sampled_from([*stored(1), "group_idx", "extra_keys", "lora_name", "locality", "cache_salt", "x"])
_EVENTS = st.builds(
    lambda event, changes: event | changes,
    st.sampled_from([stored(1, 2), removed(1), {"type": "AllBlocksCleared"}, {"type": "Later", "a": 1}]),
    st.dictionaries(_FIELDS, _JSON, max_size=3),
)


@given(st.lists(_EVENTS | _JSON, max_size=5), st.sampled_from(Dialect))
@settings(max_examples=80)
def test_mutated_events(events: list[object], dialect: Dialect) -> None:
    """Whatever stands in some events, the good one behind them is stored, and each is counted as read or as broken."""
    decoded = VllmEvents(KEY, dialect).decode(payload(*events, stored(4_711)))

    assert block_of(KEY, 4_711) in {one.block for one in created(decoded)}
    assert len(events) + 1 == sum(decoded.seen.values()) + sum(
        1 for bad in decoded.bad if bad.place.startswith("event") and "(" not in bad.place
    )
