"""Exports, read back by those who defined their form: what happened is there, once, and where it overlaps, side by side."""

import io
from collections.abc import Iterator

import httpx
import msgspec
import pyarrow.parquet as pq
import pytest
from kvtrail_collector.export import parquet, timeline
from kvtrail_schema import events as e
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import OpId
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from tests.collector.pages.story import MS, SECOND, story, story_told

OVERLAPPING = 3


def more() -> list[Event]:
    """Three transfers that begin 1 ms apart and take 10 ms each, after the story."""
    told: list[Event] = []
    for number in range(OVERLAPPING):
        op, at = OpId(100 + number), 7 * SECOND + number * MS
        told += [
            e.SwapInQueued(op=op, src=Tier.NVME, dst=Tier.HOST, t_ns=at),
            e.SwapInStarted(op=op, src=Tier.NVME, dst=Tier.HOST, t_ns=at + MS),
            e.SwapInLoaded(op=op, src=Tier.NVME, dst=Tier.HOST, bytes=64, t_ns=at + 10 * MS),
        ]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, len(story()) + 1)]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that holds the story and the overlapping transfers."""
    with story_told(more=more()) as speaking:
        yield speaking


def trace_of(client: httpx.Client, **params: str | int) -> Trace:
    """An export, parsed by Perfetto's own definitions."""
    answer = client.get("/v1/export/perfetto", params=params)
    assert answer.status_code == 200, answer.text
    trace = Trace()
    trace.ParseFromString(answer.content)
    return trace


def slices(trace: Trace) -> dict[int, list[tuple[str, int, int]]]:
    """Name, begin and end of each slice, by track; begins and ends must alternate."""
    found: dict[int, list[tuple[str, int, int]]] = {}
    opened: dict[int, tuple[str, int]] = {}
    for packet in trace.packet:
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in opened
            opened[event.track_uuid] = (event.name, packet.timestamp)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            name, begin = opened.pop(event.track_uuid)
            found.setdefault(event.track_uuid, []).append((name, begin, packet.timestamp))
    assert not opened
    return found


def tracks(trace: Trace) -> dict[int, str]:
    """The names of tracks."""
    return {
        packet.track_descriptor.uuid: packet.track_descriptor.name for packet in trace.packet if packet.track_descriptor.uuid
    }


def test_overlapping_transfers_stand_on_lanes_of_one_name(client: httpx.Client) -> None:
    """Slices of one Perfetto track must nest; these do not, so each has a track, and the viewer joins them by name."""
    trace = trace_of(client, start_ns=7 * SECOND)
    names, found = tracks(trace), slices(trace)
    lanes = [uuid for uuid, name in names.items() if name == "nvme: transfers"]

    assert len(lanes) == OVERLAPPING
    assert sorted(end - begin for uuid in lanes for _, begin, end in found[uuid]) == [9 * MS] * OVERLAPPING


def test_requests_and_steps_are_there_with_what_is_known_of_them(client: httpx.Client) -> None:
    """A request until its first token and from there to its end; its own name; its tokens as notes."""
    trace = trace_of(client, engine="e1")
    names = tracks(trace)
    by_track = {(names[uuid], name): end - begin for uuid, held in slices(trace).items() for name, begin, end in held}
    notes = [note.name for packet in trace.packet for note in packet.track_event.debug_annotations]

    assert by_track["requests: to first token", "r-one"] == 50 * MS
    assert by_track["requests: further tokens", "r-one"] == 40 * MS
    assert by_track["steps", "step 1"] == 8 * MS
    assert by_track["nvme: in queue", "nvme → gpu"] == 10 * MS
    assert {"request", "prompt_tokens", "bytes"} <= set(notes)


def test_levels_are_counters_and_wall_time_is_known(client: httpx.Client) -> None:
    """How full a tier was stands beside what moved; one snapshot joins the engine's clock to wall time."""
    trace = trace_of(client, engine="e1")
    values = [packet.track_event.counter_value for packet in trace.packet if packet.track_event.type == TrackEvent.TYPE_COUNTER]

    assert values == [600, 400, 5, 6]
    assert len([packet for packet in trace.packet if packet.HasField("clock_snapshot")]) == 1


def test_parquet_has_every_event_with_its_stream(client: httpx.Client) -> None:
    """What is read back is what was stored, in order of seq; a window cuts it."""
    whole = pq.read_table(io.BytesIO(client.get("/v1/export/parquet").content))
    part = pq.read_table(io.BytesIO(client.get("/v1/export/parquet", params={"start_ns": 7 * SECOND}).content))

    assert whole["seq"].to_pylist() == list(range(1, len(story()) + 3 * OVERLAPPING + 1))
    assert set(whole["engine"].to_pylist()) == {"e1"}
    assert part.num_rows == 3 * OVERLAPPING


def test_parquet_is_written_some_rows_at_a_time(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never all rows of all columns at once: the file is of several parts, and every column is there, the empty ones too."""
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 20, raising=False)
    file = pq.ParquetFile(io.BytesIO(client.get("/v1/export/parquet").content))
    parts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]

    assert len(parts) > 1
    assert max(parts) <= 20
    assert {"engine", "epoch", "rank", *COLUMNS} <= set(file.schema_arrow.names)


def test_more_than_anybody_can_look_at_is_refused(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export is bounded; the answer says what to do."""
    monkeypatch.setattr(timeline, "MOST_SLICES", 1)
    monkeypatch.setattr(parquet, "MOST_EVENTS", 1)
    refused = [client.get(f"/v1/export/{form}", params={"engine": "e1"}) for form in ("perfetto", "parquet")]

    assert [answer.status_code for answer in refused] == [422, 422]
    assert all("shorter" in answer.json()["error"]["do"] for answer in refused)
