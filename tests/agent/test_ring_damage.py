"""Records of no known kind: told as drops, passed over, and everything around them arrives."""

from pathlib import Path

import pytest
from kvtrail_agent import ring_layout as layout
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, Slot, StepId
from kvtrail_schema.kinds import Kind

from tests.agent.rings import TestRing, dropped_in, make_ring, settled_seqs
from tests.agent.test_shipper import emit_steps, stop
from tests.agent.voyages import voyage

UNKNOWN_KINDS = (0, max(Kind) + 1, 254)


def set_kind(ring: TestRing, seq: int, number: int) -> None:
    """Spoil the kind of a record that was written."""
    slot = seq % ring.file.slot_count
    ring.file.memory[layout.SLOTS_OFFSET + slot * layout.RECORD_BYTES + layout.KIND_OFFSET] = number


@pytest.mark.parametrize("number", UNKNOWN_KINDS)
def test_an_unknown_kind_is_a_declared_drop(number: int, private_dir: Path) -> None:
    """A record that nobody can read does not keep the others from being read."""
    ring = make_ring(private_dir)
    for step in range(5):
        ring.writer.step_started(StepId(step))
    set_kind(ring, 2, number)
    set_kind(ring, 3, number)
    ring.writer.step_started(StepId(-1))
    chunk = ring.take()
    ring.close()

    assert dropped_in(chunk) == [("ENCODE", "ENCODE_ERROR", 2, 3), ("ENCODE", "ENCODE_ERROR", 6, 6)]
    assert list(range(1, 7)) == settled_seqs(chunk)


@pytest.mark.parametrize("number", [*UNKNOWN_KINDS, Kind.STEP_STARTED])
def test_a_run_with_a_spoiled_head_is_a_declared_drop(number: int, private_dir: Path) -> None:
    """The rows of a run mean nothing without their head: they go with it."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    ring.writer.emit_blocks(
        Kind.ATTENTION_READ, [BlockId(n) for n in range(4)], [Slot(n) for n in range(4)], tier=Tier.GPU, req=7
    )
    ring.writer.step_started(StepId(2))
    set_kind(ring, 2, number)
    rest = ring.reader.read_rest()
    ring.close()

    assert [1, 6] == rest.table["seq"].to_pylist()
    assert [2, 3, 4, 5] == sorted(seq for _, _, first, last in dropped_in(rest) for seq in range(first, last + 1))
    assert {"ENCODE_ERROR"} == {reason for _, reason, _, _ in dropped_in(rest)}


def test_a_shipper_goes_on_past_what_it_cannot_read(private_dir: Path) -> None:
    """Damage in the middle costs what was damaged, and is on the books."""
    trip = voyage(private_dir)
    emit_steps(trip, 25)
    set_kind(trip.ring, 13, 254)
    stop(trip)
    delivered = trip.sail(10.0)

    assert delivered
    assert [*range(1, 13), *range(14, 26)] == trip.seqs
    assert trip.drops == [("ENCODE", "ENCODE_ERROR", 13, 13)]
