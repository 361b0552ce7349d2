"""Runs: many rows by one call come out as the rows that so many calls would have made, and are lost whole or not at all."""

from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_blocks import BLOCK_KINDS
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.block_rows import FIRST_ROW_ONLY
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import LARGEST_ID, RequestId, StepId
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind
from kvtrail_schema.reasons import ErrorReason

from tests.agent.rings import SMALLEST_SLOTS, TestRing, dropped_in, events_in, make_ring, set_next_seq, settled_seqs
from tests.strategies import integers_of, values_of

RUN = SMALLEST_SLOTS // 4
KINDS = sorted(BLOCK_KINDS)
OP: dict[str, Any] = {"op": 7, "src": Tier.NVME, "dst": Tier.GPU}


def load(ring: TestRing, blocks: Any, slots: Any = None, **fields: Any) -> int:
    """Rows of `swap_in_loaded`."""
    return ring.writer.emit_blocks(Kind.SWAP_IN_LOADED, blocks, slots, **{**OP, **fields})


def as_rows(kind: Kind, blocks: list[int], slots: list[int] | None, fields: dict[str, Any], first: int) -> list[Event]:
    """What a run must come out as: an event a row, by the rules of the layout."""
    own = {"block": blocks[0], "slot": slots[0]} if slots else {"block": blocks[0]}
    head = EVENT_OF[kind](**fields, **own, seq=first)
    return [head, *(_later(head, row, blocks, slots) for row in range(1, len(blocks)))]


def _later(head: Event, row: int, blocks: list[int], slots: list[int] | None) -> Event:
    """A row behind the head."""
    changes: dict[str, Any] = {"seq": head.seq + row, "block": blocks[row]}
    changes |= {name: None for name in FIRST_ROW_ONLY if hasattr(head, name)}
    if slots:
        changes["slot"] = slots[row]
    if getattr(head, "id", None) is not None:
        changes["id"] = getattr(head, "id") + row  # noqa: B009 - not every event has one
    if getattr(head, "parent", None) is not None:
        changes["parent"] = blocks[row - 1]
    start, tokens = getattr(head, "token_start", None), getattr(head, "tokens", None)
    if hasattr(head, "parent") and start is not None and tokens is not None:
        changes["token_start"] = start + row * tokens
    return msgspec.structs.replace(head, **changes)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Kind, list[int], list[int] | None, dict[str, Any]]:
    """Any call of `emit_blocks` that is right."""
    kind = draw(st.sampled_from(KINDS))
    own, needed = set(FIELDS_OF[kind]) - {"block", "slot"}, REQUIRED_OF[kind] - {"block", "slot"}
    fields = {name: draw(values_of(kind, name)) for name in sorted(own) if name in needed or draw(st.booleans())}
    for name in ("id", "token_start", "tokens"):  # they count up from row to row, and may not go over their range
        if name in fields:
            fields[name] = draw(st.integers(0, 1 << 20))
    blocks = draw(st.lists(st.integers(0, LARGEST_ID), min_size=1, max_size=40))
    with_slots = "slot" in FIELDS_OF[kind] and ("slot" in REQUIRED_OF[kind] or draw(st.booleans()))
    slots = [draw(integers_of(COLUMNS["slot"].width)) for _ in blocks] if with_slots else None
    return kind, blocks, slots, {**fields, "t_ns": draw(integers_of(COLUMNS["t_ns"].width))}


@settings(max_examples=80)
@given(st.lists(calls(), min_size=1, max_size=8))
def test_rows_come_out_as_single_events_would(drawn: list[tuple[Kind, list[int], list[int] | None, dict[str, Any]]]) -> None:
    """Any kind, any fields, any number of rows, over many rounds of the ring, with single events in between."""
    found, expected, seq = [], [], 1
    with TemporaryDirectory() as folder:
        ring = make_ring(Path(folder))
        for kind, blocks, slots, fields in drawn:
            first = ring.writer.emit_blocks(kind, blocks, slots, **fields)
            single = ring.writer.step_started(StepId(5), t_ns=3)
            expected += as_rows(kind, blocks, slots, fields, seq)
            expected.append(EVENT_OF[Kind.STEP_STARTED](seq=seq + len(blocks), t_ns=3, step=5))  # type: ignore[call-arg]
            found += events_in(ring.take())

            assert (seq, seq + len(blocks)) == (first, single)

            seq += len(blocks) + 1
        ring.close()

    assert expected == found


FORMS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "array": lambda ids: array("Q", ids),
    "numpy": lambda ids: np.array(ids, dtype=np.uint64),
    "numpy, signed": lambda ids: np.array(ids, dtype=np.int64),
    "numpy, every other": lambda ids: np.repeat(np.array(ids, dtype=np.uint64), 2)[::2],
    "memoryview": lambda ids: memoryview(array("Q", ids)),
    "bytes as u64": lambda ids: memoryview(array("Q", ids).tobytes()).cast("Q"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("count", [1, 5, 600])
def test_blocks_come_in_any_form(form: Callable[[list[int]], Any], count: int, private_dir: Path) -> None:
    """Buffers are taken as they are, sequences number by number; the rows are the same."""
    ring = make_ring(private_dir, slot_count=4096)
    ids = [number * 1_000_003 for number in range(count)]
    load(ring, form(ids))
    found = ring.take().table["block"].to_pylist()
    ring.close()

    assert ids == found


SLOT_FORMS: dict[str, Callable[[Iterable[int]], Any]] = {
    "list": list,
    "numpy": lambda ids: np.array(list(ids), dtype=np.uint32),
    "numpy, wide": lambda ids: np.array(list(ids), dtype=np.uint64),
    "array": lambda ids: array("I", ids),
}


@pytest.mark.parametrize("form", SLOT_FORMS.values(), ids=SLOT_FORMS)
def test_slots_come_in_any_form(form: Callable[[Iterable[int]], Any], private_dir: Path) -> None:
    """One place a row, in the order of the blocks."""
    ring = make_ring(private_dir)
    load(ring, range(10, 20), form(range(70, 80)))
    found = ring.take().table.select(["block", "slot"]).to_pylist()
    ring.close()

    assert [{"block": 10 + row, "slot": 70 + row} for row in range(10)] == found


def test_no_rows_are_no_event(private_dir: Path) -> None:
    """An empty batch draws no seq."""
    ring = make_ring(private_dir)
    seqs = [load(ring, []), load(ring, np.array([], dtype=np.uint64)), ring.writer.step_started(StepId(1))]
    ring.close()

    assert [0, 0, 1] == seqs


BAD_ROWS: dict[str, tuple[Any, Any, dict[str, Any], int]] = {
    "text for a block": (["a", 2], None, {}, 2),
    "negative block": ([1, -2, 3], None, {}, 3),
    "65 bits": ([1 << 64], None, {}, 1),
    "no sequence": (7, None, {}, 1),
    "fewer slots": ([1, 2, 3], [1, 2], {}, 3),
    "more slots": ([1, 2, 3], [1, 2, 3, 4], {}, 3),
    "33 bits of slot": ([1, 2], [1, 1 << 32], {}, 2),
    "bad field": ([1, 2], None, {"tokens": -1}, 2),
    "bad time": ([1, 2], None, {"t_ns": "now"}, 2),
}


@pytest.mark.parametrize("call", BAD_ROWS.values(), ids=BAD_ROWS)
def test_wrong_values_cost_their_rows_alone(call: tuple[Any, Any, dict[str, Any], int], private_dir: Path) -> None:
    """One wrong value drops the rows of its call as (encode, encode_error); nothing is raised, nothing else is lost."""
    blocks, slots, fields, count = call
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    seq = load(ring, blocks, slots, **fields)
    ring.writer.step_started(StepId(2))
    chunk = ring.take()
    ring.close()

    assert seq == 2
    assert dropped_in(chunk) == [("ENCODE", "ENCODE_ERROR", 2, 1 + count)]
    assert [1, 2 + count] == chunk.table["seq"].to_pylist()


WRONG_CALLS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "kind without a block": (Kind.STEP_STARTED, None, {"step": 1}),
    "no kind": (999, None, {}),
    "missing field": (Kind.SWAP_IN_LOADED, None, {"op": 1}),
    "strange field": (Kind.SWAP_IN_LOADED, None, {**OP, "step": 1}),
    "block for all": (Kind.SWAP_IN_LOADED, None, {**OP, "block": 1}),
    "slot for all": (Kind.SWAP_IN_LOADED, None, {**OP, "slot": 1}),
    "slots needed": (Kind.BLOCK_CREATED, None, {"tier": Tier.GPU}),
    "slots unknown": (Kind.PREFETCH_READY, [1], {"prefetch": 1}),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_call_that_matches_no_signature_is_refused(call: tuple[Any, Any, dict[str, Any]], private_dir: Path) -> None:
    """As with any method: a TypeError, and no seq is drawn."""
    kind, slots, fields = call
    ring = make_ring(private_dir)
    with pytest.raises(TypeError):
        ring.writer.emit_blocks(kind, [1], slots, **fields)
    seq = ring.writer.step_started(StepId(1))
    ring.close()

    assert seq == 1


def test_a_run_without_room_is_dropped_whole(private_dir: Path) -> None:
    """What fits of a long batch is there, run by run; the rest is one range of drops, and later ones find room again."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    load(ring, range(SMALLEST_SLOTS + 3))
    ring.writer.step_started(StepId(2))
    chunk = ring.take()
    load(ring, [1])
    after = ring.take()
    ring.close()
    end = 1 + 3 * RUN

    assert list(range(1, end + 1)) == chunk.table["seq"].to_pylist()
    assert dropped_in(chunk) == [("RING", "FULL", end + 1, SMALLEST_SLOTS + 5)]
    assert [SMALLEST_SLOTS + 6] == after.table["seq"].to_pylist()


def test_parts_stand_on_the_first_row_of_all(private_dir: Path) -> None:
    """A batch that takes several runs has the parts of its op once."""
    ring = make_ring(private_dir)
    load(ring, range(2 * RUN + 5), io_ns=9, queue_ns=4)
    found = ring.take().table
    ring.close()

    assert [9, *[None] * (2 * RUN + 4)] == found["io_ns"].to_pylist()
    assert [4, *[None] * (2 * RUN + 4)] == found["queue_ns"].to_pylist()
    assert list(range(2 * RUN + 5)) == found["block"].to_pylist()


def test_a_run_is_read_whole(private_dir: Path) -> None:
    """However few rows are asked for, a run is not cut; what follows it waits its turn."""
    ring = make_ring(private_dir)
    load(ring, range(10))
    load(ring, range(20, 25))
    first = ring.take(3)
    second = ring.take(3)
    ring.close()

    assert list(range(10)) == first.table["block"].to_pylist()
    assert list(range(20, 25)) == second.table["block"].to_pylist()


def test_half_a_run_is_not_released(private_dir: Path) -> None:
    """A chunk cut inside a run: after its first half was delivered, a new reader still finds the whole run."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    load(ring, range(9))
    whole = ring.reader.read(100)
    first, second = whole.halves()
    ring.reader.release(first)
    again = ring.reader.read(100)
    ring.reader.release(second)
    after = ring.take()
    ring.close()

    assert list(range(9)) == again.table["block"].to_pylist()
    assert settled_seqs(whole) == [*settled_seqs(first), *settled_seqs(second)]
    assert after.is_empty


def tear(ring: TestRing, seq: int) -> None:
    """Let the record of a seq be as if its thread had been torn out before the commit word."""
    offset = (seq % ring.file.slot_count) * layout.RECORD_BYTES + layout.SLOTS_OFFSET + layout.COMMIT_OFFSET
    ring.file.memory[offset : offset + 4] = bytes(4)


@pytest.mark.parametrize("torn", [[2], [2, 3, 4], [2, 6]], ids=["head", "head and more", "both ends"])
def test_a_torn_run_is_no_rows(torn: list[int], private_dir: Path) -> None:
    """The head is written last: where it is missing, the rows are (process, killed) whole, and what follows is read."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    load(ring, range(5))
    ring.writer.error(ErrorReason.IO, text="after")
    for seq in torn:
        tear(ring, seq)
    while_alive = ring.reader.read(100)
    rest = ring.reader.read_rest()
    ring.close()

    assert [1] == while_alive.table["seq"].to_pylist()
    assert [1, 7] == rest.table["seq"].to_pylist()
    assert dropped_in(rest) == [("PROCESS", "KILLED", 2, 6)]


def test_a_torn_run_can_be_given_up(private_dir: Path) -> None:
    """A run whose thread never comes back holds the others up no longer than a single event does."""
    ring = make_ring(private_dir)
    load(ring, range(5))
    ring.writer.step_started(StepId(1))
    tear(ring, 1)
    hole = ring.reader.read_hole()
    ring.reader.release(hole)
    after = ring.take()
    ring.close()

    assert dropped_in(hole) == [("ENCODE", "KILLED", 1, 5)]
    assert [6] == after.table["seq"].to_pylist()


@pytest.mark.parametrize("border", [1 << 30, 1 << 32])
def test_runs_go_on_where_commit_words_begin_anew(border: int, private_dir: Path) -> None:
    """Billions of events on, a run across the border is read as ever."""
    ring = make_ring(private_dir)
    set_next_seq(ring, border - 4)
    load(ring, range(9))
    chunk = ring.take()
    ring.close()

    assert list(range(border - 4, border + 5)) == chunk.table["seq"].to_pylist()
    assert list(range(9)) == chunk.table["block"].to_pylist()


def test_ids_count_up_and_chains_follow(private_dir: Path) -> None:
    """Evictions get an id each; the blocks of `block_created` are each other's parents, their tokens follow on."""
    ring = make_ring(private_dir)
    ring.writer.emit_blocks(Kind.EVICTED, range(20), range(20), tier=Tier.GPU, reason=1, id=100)
    fields = {"tier": Tier.GPU, "parent": 999, "tokens": 16, "token_start": 32, "req": RequestId(1)}
    ring.writer.emit_blocks(Kind.BLOCK_CREATED, range(1, 21), range(20), **fields)
    found = ring.take().table
    ring.close()
    created = found.slice(20)

    assert list(range(100, 120)) == found["id"].to_pylist()[:20]
    assert [999, *range(1, 20)] == created["parent"].to_pylist()
    assert [32 + 16 * row for row in range(20)] == created["token_start"].to_pylist()


def test_a_closed_writer_takes_no_rows(private_dir: Path) -> None:
    """After the end no seq is drawn, whatever the rows."""
    ring = make_ring(private_dir)
    ring.writer._closed = True
    seqs = [load(ring, [1, 2]), load(ring, ["a"]), ring.writer._last_seq()]
    ring.close()

    assert [0, 0, 0] == seqs


def test_the_reserved_id_is_absent(private_dir: Path) -> None:
    """A block of the one id that says "absent" is a row without a block, as by a single event."""
    ring = make_ring(private_dir)
    load(ring, [1, NO_U64, 3])
    found = ring.take().table["block"].to_pylist()
    ring.close()

    assert [1, None, 3] == found
