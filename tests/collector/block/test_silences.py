"""Promises of a block's life where processes end, begin anew, and say less than all: never surer than events allow."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest
from kvtrail_collector.block_life import FOREVER_NS, BlockLife, CopyState
from kvtrail_collector.questions.block import block_life
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.store import Incoming
from kvtrail_collector.testing import memory_store
from kvtrail_schema.batch import DecodedBatch, StreamState
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import AgentStarted, AgentStopped, BackpressureOn, BlockCreated, Event, Evicted, SwapOutWritten
from kvtrail_schema.identity import BlockId, EventId, OpId, Slot
from kvtrail_schema.jsonl import id_of, read_lines
from kvtrail_schema.reasons import AgentReason, BackpressureReason, EvictReason

from tests.collector.frames import HEARD_NS, header, table

BLOCK = id_of("b")
GPU, NVME = Tier.GPU, Tier.NVME
FAREWELL = AgentStopped(seq=2, t_ns=20, reason=AgentReason.RECORDER, produced=2)
LOADED = '{"t_ms": 1, "kind": "swap_in_loaded", "op": 1, "src": "nvme", "dst": "gpu", "block": "b"}'


@dataclass(frozen=True, slots=True)
class Told:
    """What one process said; its first event has the seq 1 unless the events say otherwise."""

    events: Sequence[Event]
    engine: str = "engine"
    epoch: int = 1
    produced: int = 0
    state: StreamState = StreamState.RUNNING
    heard_ns: int = 0

    def frame(self) -> Incoming:
        """A batch of it; last heard of at its last event, or later."""
        head = header([event.seq for event in self.events], engine=self.engine, epoch=self.epoch, produced=self.produced)
        own_ns = max(self.heard_ns, *(event.t_ns for event in self.events))
        clocks = Clocks(monotonic_ns=own_ns, wall_ns=HEARD_NS + own_ns, error_ns=1)
        return Incoming(
            DecodedBatch(msgspec.structs.replace(head, clocks=clocks, state=self.state), table(self.events)), HEARD_NS
        )


def life(told: Sequence[Told], at_ns: int | None = None) -> BlockLife:
    """What is known of the block after all of it."""
    with memory_store() as store:
        for one in told:
            store.submit(one.frame()).result()
        with store.read() as cursor:
            found = block_life(cursor, streams(cursor), BLOCK, at_ns)
    assert found is not None
    return found


def states(told: Sequence[Told], at_ns: int | None = None) -> list[tuple[str, CopyState, str | None]]:
    """Engine, state and end of each copy."""
    return [(copy.engine, copy.state, copy.ended_by) for copy in life(told, at_ns).copies]


def made(t_ns: int, seq: int = 1, block: int = BLOCK) -> BlockCreated:
    """A copy on the GPU."""
    return BlockCreated(seq=seq, t_ns=t_ns, block=BlockId(block), tier=GPU, slot=Slot(1))


def written(t_ns: int, seq: int = 1, block: int = BLOCK) -> SwapOutWritten:
    """A copy on NVMe."""
    return SwapOutWritten(seq=seq, t_ns=t_ns, op=OpId(1), src=GPU, dst=NVME, block=BlockId(block), slot=Slot(3))


def gone(t_ns: int, seq: int = 1, tier: Tier = NVME, slot: int = 3, cause: int | None = None) -> Evicted:
    """The end of a copy."""
    own = None if cause is None else EventId(cause)
    reason = EvictReason.CAPACITY
    return Evicted(seq=seq, t_ns=t_ns, block=BlockId(BLOCK), tier=tier, slot=Slot(slot), reason=reason, cause=own)


@pytest.mark.parametrize("end", [gone(50), written(50, block=BLOCK + 1)])
@pytest.mark.parametrize("began_ns", [10, 1_000])
def test_what_lies_on_nvme_outlives_its_process(end: Event, began_ns: int) -> None:
    """A later process of the same engine ends what an earlier one wrote, even after a clock that began anew; no other can."""
    ended = "evicted (capacity)" if isinstance(end, Evicted) else "superseded"
    first = Told([written(began_ns), msgspec.structs.replace(FAREWELL, t_ns=began_ns + 1)])

    assert [("engine", CopyState.GONE, ended)] == states([first, Told([end], epoch=2)])
    assert [] == states([first, Told([end], epoch=2)], 2_000)
    assert ("engine", CopyState.RESIDENT, None) in states([first, Told([end], engine="other", epoch=2)])


def test_nvme_is_unknown_where_any_later_process_is_silent() -> None:
    """The first events of a later process are lost: what lay on NVMe may have gone in them, but not before."""
    later = Told([AgentStarted(seq=5, t_ns=60)], epoch=2)
    told = [Told([written(10), FAREWELL]), later]

    assert [CopyState.RESIDENT] == [copy.state for copy in life(told, 19).copies]
    assert [("engine", CopyState.UNKNOWN, None)] == states(told, 70)
    assert [(20, 60)] == [(window.start_ns, window.end_ns) for window in life(told).unknown]


@pytest.mark.parametrize(
    ("told", "gone_ns"),
    [
        ([Told([made(10), FAREWELL], state=StreamState.STOPPED)], 20),
        ([Told([made(10)], state=StreamState.KILLED, heard_ns=30)], 30),
        ([Told([made(10)], heard_ns=30), Told([AgentStarted(seq=1, t_ns=90)], epoch=2)], 30),
    ],
)
def test_memory_ends_with_its_process(told: list[Told], gone_ns: int) -> None:
    """A farewell, a kill, or a successor ends what was in the memory of a process, and no reader is told that it is there."""
    assert [("engine", CopyState.GONE, "process ended")] == states(told)
    assert [] == states(told, gone_ns)
    assert ["process ended"] == [copy.ended_by for copy in life(told, gone_ns - 1).copies]


def test_an_import_ends_without_its_process() -> None:
    """What was read to its end says what was there, and nothing about later."""
    told = [Told([made(10)], state=StreamState.STOPPED)]

    assert [("engine", CopyState.RESIDENT, None)] == states(told)
    assert [("engine", CopyState.RESIDENT, None)] == states(told, 10)
    assert [("engine", CopyState.UNKNOWN, None)] == states(told, 11)


def test_a_lost_tail_makes_unknown() -> None:
    """Events behind the last stored one may have ended a copy: from there on nothing is known, for ever."""
    told = [Told([made(10)], produced=1_000)]
    later = life(told, 50)

    assert [("engine", CopyState.UNKNOWN, None)] == states(told, 50)
    assert [("engine", CopyState.RESIDENT, None)] == states(told, 10)
    assert [(10, FOREVER_NS)] == [(window.start_ns, window.end_ns) for window in later.unknown]
    assert [("engine", CopyState.RESIDENT, None)] == states(told)


def test_a_tail_that_can_not_come_any_more_hides_what_lasts() -> None:
    """A killed process took its last events along: what it wrote to NVMe may be gone, with or without a moment."""
    told = [Told([written(10)], produced=1_000, state=StreamState.KILLED)]

    assert [("engine", CopyState.UNKNOWN, None)] == states(told)


def test_a_hole_of_one_engine_hides_nothing_of_another() -> None:
    """Each copy is judged by the events of those who can end it."""
    holed = Told([made(5), made(40, seq=9)], engine="other")
    found = states([Told([made(10)]), holed], 60)

    assert [("engine", CopyState.RESIDENT, None), ("other", CopyState.RESIDENT, None)] == found


def test_a_slot_that_is_not_told_may_be_any() -> None:
    """A load without slot is ended by the eviction of its block, whatever slot that names, and by nothing of another block."""
    end = '{"t_ms": 9, "kind": "evicted", "block": "b", "tier": "gpu", "slot": 4, "reason": "capacity"}'
    other = '{"t_ms": 5, "kind": "block_created", "block": "other", "tier": "gpu", "slot": 4}'
    told = [Told([line.event for line in read_lines([LOADED, other, end])])]

    assert [("engine", CopyState.GONE, "evicted (capacity)")] == states(told)


def test_what_is_seen_of_a_copy_tells_its_slot() -> None:
    """A copy that was read in a slot is gone once another block stands there."""
    read = '{"t_ms": 3, "kind": "attention_read", "req": "r", "block": "b", "tier": "gpu", "slot": 4}'
    other = '{"t_ms": 5, "kind": "block_created", "block": "other", "tier": "gpu", "slot": 4}'
    told = [Told([line.event for line in read_lines([LOADED, read, other])])]

    assert [("engine", CopyState.GONE, "superseded")] == states(told)


def test_causes_are_of_the_same_process() -> None:
    """Ids are drawn anew by each process: what another called the same is no cause, and what is not stored is so told."""
    other = BackpressureOn(seq=1, t_ns=5, id=EventId(70), tier=NVME, reason=BackpressureReason.DISK_QUEUE)
    one = Told([other], epoch=1)
    two = Told([written(30), gone(40, seq=2, cause=70)], epoch=2)
    three = Told([msgspec.structs.replace(other, tier=Tier.REMOTE), gone(60, seq=2, cause=70)], epoch=3)

    assert ["caused by event 70, which is not stored", "backpressure on remote (disk_queue)"] == [
        link.text for link in life([one, two, three]).chain if "70" in link.text or "backpressure" in link.text
    ]
