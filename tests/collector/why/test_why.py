"""Why one request was slow: everything that is known of it, in one answer."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from kvtrail_collector.facts_build import Recording, recording_of_events, recording_of_table
from kvtrail_collector.ledger_parts import Component, Part
from kvtrail_collector.why import Why, why_recording
from kvtrail_collector.why_chain import links_from
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import CopyWaited, RequestArrived, RequestFirstToken, SwapInLoaded, SwapInQueued
from kvtrail_schema.identity import Epoch, OpId, Rank, RequestId, Seq, Stream
from kvtrail_schema.jsonl import id_of, read_file, read_lines

from tests.collector.attribution.synthetic import stream_table

MS = 1_000_000


@pytest.fixture(scope="module", name="recording")
def recording_of_story() -> Recording:
    """A request that waits behind another tenant's write, then decodes, with one step that gives it no token."""
    lines = list(read_file(str(Path(__file__).parent / "story.jsonl")))
    return recording_of_events([line.event for line in lines], lines[0].stream)


@pytest.fixture(scope="module", name="answer")
def answer_of_story(recording: Recording) -> Why:
    """What is said of that request."""
    found = why_recording(recording, "r")
    assert found is not None
    return found


def test_a_load_that_another_began_has_its_queue_told() -> None:
    """A request that waits by name for somebody else's load hears behind whose work that load stood."""
    one, two, queued_ns = OpId(1), OpId(2), 10 * MS
    reads: dict[str, Any] = {"src": Tier.NVME, "dst": Tier.GPU}
    events = [
        RequestArrived(t_ns=0, req=RequestId(1), tokens=64, text="r"),
        SwapInQueued(t_ns=queued_ns - MS, op=one, req=RequestId(9), **reads),
        SwapInQueued(t_ns=queued_ns, op=two, req=RequestId(8), **reads),
        SwapInLoaded(t_ns=queued_ns + 20 * MS, op=one, req=RequestId(9), queue_ns=0, io_ns=21 * MS, **reads),
        SwapInLoaded(t_ns=queued_ns + 25 * MS, op=two, req=RequestId(8), queue_ns=20 * MS, io_ns=5 * MS, **reads),
        CopyWaited(t_ns=queued_ns + 25 * MS, req=RequestId(1), wait_ns=25 * MS, op=two),
        RequestFirstToken(t_ns=40 * MS, req=RequestId(1)),
    ]
    numbered = [msgspec.structs.replace(event, seq=Seq(seq)) for seq, event in enumerate(events, start=1)]
    found = why_recording(recording_of_events(numbered, Stream("e", Epoch(1), Rank(0))), "r")

    assert found is not None
    assert [(1, 20 * MS)] == [(item.op, item.ns) for item in found.waited_on]


def test_parts(answer: Why) -> None:
    """The parts add up to the time to first token."""
    assert 35 * MS == answer.ttft_ns == sum(part.ns for part in answer.parts)
    assert not answer.censored
    assert answer.device == "cpu-emulated"


def test_waited_on(answer: Why) -> None:
    """Its time in the queue was the service of the other tenant's write."""
    assert [(item.op, item.tier, item.owner, item.ns) for item in answer.waited_on] == [(50, "nvme", "bb", 20 * MS)]


def test_write_backs_hold_nobody() -> None:
    """A write of the request's own blocks that stood in a queue is nothing that the request waited on."""
    lines = [
        '{"t_ms": 0, "kind": "request_arrived", "req": "r", "tokens": 8}',
        '{"t_ms": 0, "kind": "request_admitted", "req": "r"}',
        '{"t_ms": 1, "kind": "swap_out_queued", "op": 1, "src": "gpu", "dst": "host", "req": "other"}',
        '{"t_ms": 1, "kind": "swap_out_started", "op": 1, "src": "gpu", "dst": "host", "req": "other"}',
        '{"t_ms": 2, "kind": "swap_out_queued", "op": 2, "src": "gpu", "dst": "host", "req": "r"}',
        '{"t_ms": 9, "kind": "swap_out_written", "op": 1, "src": "gpu", "dst": "host", "req": "other"}',
        '{"t_ms": 9, "kind": "swap_out_started", "op": 2, "src": "gpu", "dst": "host", "req": "r"}',
        '{"t_ms": 10, "kind": "swap_out_written", "op": 2, "src": "gpu", "dst": "host", "req": "r", "queue_ms": 7}',
        '{"t_ms": 12, "kind": "request_first_token", "req": "r"}',
    ]
    read = list(read_lines(lines))
    answer = why_recording(recording_of_events([line.event for line in read], read[0].stream), "r")

    assert answer is not None
    assert () == answer.waited_on


def test_a_cause_is_of_the_same_process() -> None:
    """Each process counts its ids from one: what an earlier one did is no cause of what a later one does."""
    asked = (
        '{"epoch": 1, "seq": 1, "t_ms": 0, "kind": "invalidation_requested", "id": 5, "reason": "document_deleted", "text": ""}'
    )
    block = '"block": "a", "tier": "gpu", "slot": 1, "reason": "prefetch_room", "cause": 5'
    evicted = f'{{"epoch": %d, "seq": 2, "t_ms": 9, "kind": "evicted", {block}}}'
    told = []
    for epoch in (1, 2):
        rows = pa.concat_tables([_row(line) for line in (asked, evicted % epoch)])
        told.append([link.event is not None for link in links_from(recording_of_table(rows).rows, [1])])

    assert [[True, True], [True, False]] == told


def _row(line: str) -> pa.Table:
    """One line as a table that names its stream."""
    (read,) = read_lines([line])
    table = stream_table([read.event])
    return table.set_column(table.column_names.index("epoch"), "epoch", pa.array([read.stream.epoch], pa.uint64()))


def test_chain(answer: Why) -> None:
    """A miss leads to the eviction behind it, and a cause that is not stored is shown so."""
    assert [" ".join(link.text.split()[:2]) for link in answer.chain[:2]] == ["prefix miss", "evicted block"]
    assert answer.chain[1].text.endswith("gpu (capacity)")
    assert (answer.chain[2].event, answer.chain[2].text) == (None, "caused by event 60, which is not stored")


def test_gaps(answer: Why) -> None:
    """Gaps run from token to token, longest first; a step that gives no token is part of the gap."""
    longest = answer.gaps[0]

    assert [(gap.step, gap.ns) for gap in answer.gaps] == [(4, 30 * MS), (2, 5 * MS)]
    assert longest.parts == (
        Part(Component.DEFERRED, None, None, 3 * MS),
        Part(Component.STALLED, None, None, 2 * MS),
        Part(Component.DECODE_STEP, None, "pure", 5 * MS),
        Part(Component.DECODE_STEP, None, "with_prefill", 20 * MS),
    )


def test_estimate(answer: Why) -> None:
    """What recomputing would have cost is the engine's own estimate."""
    assert answer.recompute_estimate_ns == 40 * MS


def test_censored(recording: Recording) -> None:
    """A request that still waits in a queue has waited there so far."""
    answer = why_recording(recording, RequestId(id_of("late")))

    assert answer is not None
    assert answer.censored
    assert [(p.component.value, p.ns) for p in answer.parts] == [("sched_wait.capacity", 5 * MS), ("tier_queue", 4 * MS)]


def test_unknown(recording: Recording) -> None:
    """Nothing is said of a request that never arrived."""
    assert why_recording(recording, "nobody") is None
    assert why_recording(recording, "12345") is None
