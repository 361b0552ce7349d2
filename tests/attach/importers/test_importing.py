"""Files become rows: read line by line, numbered the same each time, and wherever they shall go."""

import json
from pathlib import Path

import msgspec
import pytest
from kvtrail_agent.errors import SettingsInvalid, TransportUnavailable
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.frames import Frames
from kvtrail_agent.importers.importing import Import, Totals
from kvtrail_agent.importers.outputs import TransportSender
from kvtrail_agent.importers.records import read_csv, read_json
from kvtrail_agent.importers.user_key import user_key
from kvtrail_agent.testing import RecordingTransport
from kvtrail_schema.batch import StreamState, decode_batch
from kvtrail_schema.events import BlockCreated, Error, EventsDropped

from tests.attach.importers.cases import CASES, VLLM, Case, message
from tests.attach.importers.payloads import KEY, TS, TS_NS, stored

BY_FORMAT = {case.format: case for case in CASES}
ANCHOR_NS = 1_700_000_000_000_000_000


def written(path: Path, records: tuple[object, ...]) -> Path:
    """A file of JSON Lines."""
    path.write_bytes(b"\n".join(msgspec.json.encode(record) for record in records))
    return path


def run(format_name: str, *paths: Path, rows_a_frame: int = 8192, engine: str = "") -> tuple[Totals, RecordingTransport]:
    """An import into memory."""
    transport = RecordingTransport()
    output = Frames(TransportSender(transport), ANCHOR_NS, rows_a_frame)
    return Import(FORMATS[format_name], KEY, output, engine).run(paths), transport


@pytest.mark.parametrize("case", [case for case in CASES if case.format != "trtllm-transfers"], ids=lambda case: case.format)
def test_a_file(case: Case, tmp_path: Path) -> None:
    """A file of each format is read whole, and its events come in frames that say where their streams end."""
    totals, transport = run(case.format, written(tmp_path / "f.jsonl", case.records))
    ends = {(header.engine, header.epoch, header.rank): header.produced for header in transport.headers if header.count == 0}

    assert (len(case.records), case.seen, 0) == (totals.records, totals.seen, totals.quarantined)
    assert totals.events == len(transport.events)
    assert len(totals.streams) == len(ends)
    assert {StreamState.STOPPED} == {header.state for header in transport.headers if header.count == 0}


def test_lines_that_cannot_be_read(tmp_path: Path) -> None:
    """A broken line is told by file, line and reason; those around it are imported."""
    path = tmp_path / "f.jsonl"
    good = [msgspec.json.encode(message(number, stored(number + 1))) for number in range(2)]
    path.write_bytes(b"\n".join([good[0], b'{"topic": ', b"", b"\xff\xfe", b'{"seq": 3}', good[1]]))
    totals, transport = run("vllm", path)

    assert [f"{path}: line {number}" for number in (2, 4, 5)] == [one.where for one in totals.problems]
    assert "not JSON" in totals.problems[0].what
    assert 2 == sum(isinstance(event, BlockCreated) for event in transport.events)


def test_the_same_file_again_after_it_grew(tmp_path: Path) -> None:
    """What a file held before has the same streams and seqs once it has grown: a store takes only what is new."""
    path = tmp_path / "f.jsonl"
    _, before = run("vllm", written(path, VLLM.records[:2]))
    _, after = run("vllm", written(path, VLLM.records))
    known = {(h.engine, h.epoch, h.rank): h.last_seq for h in before.headers if h.count}
    later = {(h.engine, h.epoch, h.rank): h.last_seq for h in after.headers if h.count}

    assert known.keys() <= later.keys()
    assert before.events == after.events[: len(before.events)]


def test_files_without_times_are_told_apart(tmp_path: Path) -> None:
    """Two files whose records have no time of day never share a stream, though they begin alike."""
    _, one = run("dynamo", written(tmp_path / "a", BY_FORMAT["dynamo"].records))
    _, other = run("dynamo", written(tmp_path / "b", BY_FORMAT["dynamo"].records[:2]))

    assert not {header.epoch for header in one.headers} & {header.epoch for header in other.headers}
    assert {ANCHOR_NS} == {header.clocks.wall_ns for header in one.headers}


def test_a_message_without_a_time_leaves_the_others_theirs(tmp_path: Path) -> None:
    """A stream whose first message says no time is still tied to the time of day by those behind it."""
    first = {"topic": "kv", "seq": 0, "payload": ["noon", [stored(1)], 0]}
    second = {"topic": "kv", "seq": 1, "payload": [TS, [stored(2)], 0]}
    _, transport = run("vllm", written(tmp_path / "f", (first, second)))

    assert {TS_NS} == {header.clocks.wall_ns for header in transport.headers if header.count}


def test_a_gap_is_declared(tmp_path: Path) -> None:
    """A message that never came takes a seq, and that seq is declared as dropped."""
    totals, transport = run("vllm", written(tmp_path / "f", (message(0, stored(1)), message(3, stored(2)))))
    (lost,) = [event for event in transport.events if isinstance(event, EventsDropped)]

    assert (2, 2) == (lost.count, sum(one.lost for one in totals.streams.values()))
    assert (3, 4, 5) == (lost.first_seq, lost.last_seq, lost.seq)


def test_a_restart_is_a_new_epoch(tmp_path: Path) -> None:
    """A publisher whose numbers begin anew at a later time is another life: another epoch."""
    first, again = message(0, stored(1)), message(5, stored(2)) | {"seq": 0}
    totals, _ = run("vllm", written(tmp_path / "f", (first, again, again)))

    assert 2 == len(totals.streams)
    assert {"restarts of an engine": 1, "messages that came twice": 1} == totals.remarks


def test_unknown_fields_stay_with_their_event(tmp_path: Path) -> None:
    """A field that a newer engine writes is in `extra` of the event's own row, after the way over the wire."""
    _, transport = run("vllm", written(tmp_path / "f", (message(0, stored(1) | {"colour": 7}),)))
    extras = [text for frame in transport.frames for text in decode_batch(frame).table["extra"].to_pylist() if text]

    assert [{"imported": '{"colour":7}'}] == [json.loads(str(text)) for text in extras]


def test_small_frames(tmp_path: Path) -> None:
    """Rows come in frames of at most the size that was asked for, in their order."""
    totals, transport = run("mooncake-trace", written(tmp_path / "f", BY_FORMAT["mooncake-trace"].records), rows_a_frame=3)

    assert [3, 3, 2, 0] == [header.count for header in transport.headers]
    assert list(range(1, totals.events + 1)) == [event.seq for event in transport.events]


def test_an_operators_name(tmp_path: Path) -> None:
    """A name that is given stands for every engine of the source; their streams stay apart."""
    totals, _ = run("vllm", written(tmp_path / "f", VLLM.records), engine="mine")

    assert {"mine"} == {one.engine for one in totals.streams}
    assert 3 == len(totals.streams)


def test_a_busy_collector_is_asked_again(tmp_path: Path) -> None:
    """A frame that is not taken now is sent again after a while; one that never is, ends the import."""
    waits: list[float] = []
    path = written(tmp_path / "f", BY_FORMAT["mooncake-trace"].records)
    busy = [RecordingTransport([TransportUnavailable("busy")] * times) for times in (2, 9)]
    outputs = [Frames(TransportSender(transport, waits.append), 0) for transport in busy]
    Import(FORMATS["mooncake-trace"], KEY, outputs[0]).run([path])

    assert (2, 8) == (len(waits), len(busy[0].events))
    with pytest.raises(TransportUnavailable):
        Import(FORMATS["mooncake-trace"], KEY, outputs[1]).run([path])


def test_documents(tmp_path: Path) -> None:
    """One JSON document over many lines is read like lines; an object of lists is several sequences by name."""
    records = list(BY_FORMAT["trtllm"].records[:2])
    (tmp_path / "list").write_text(json.dumps(records, indent=1))
    (tmp_path / "named").write_text(json.dumps({"S1": records, "S2": records}, indent=1))

    assert ["document[0]", "document[1]"] == [record.place for record in read_json(tmp_path / "list")]
    assert ["S1", "S1", "S2", "S2"] == [record.sequence for record in read_json(tmp_path / "named")]
    assert 2 == len(run("trtllm", tmp_path / "named")[0].streams)


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    """NaN, which Python writes, spoils no record."""
    path = tmp_path / "f"
    path.write_text('{"iter": 1, "cacheHitRate": NaN, "iterLatencyMS": 2}\n')
    totals, _ = run("trtllm", path)

    assert 0 == totals.quarantined


def test_csv_headers(tmp_path: Path) -> None:
    """Columns with one name are told apart by number, and the name of the file says who sends."""
    path = tmp_path / "rank_0_send.csv"
    path.write_text(
        "RequestID,RequestInfo,Preparation,Preprocess,Transmissions,Postprocess,Delay,Duration,Bandwidth(Gbps),"
        "Delay,Duration,Bandwidth(Gbps)\n7,0,0,0,0,0,1,2,8,3,4,8\n7,0,0,0,0,0,1,x,8\n"
    )
    totals, transport = run("trtllm-transfers", path)

    assert "Delay.2" in next(read_csv(path)).value  # type: ignore[operator]  # a row is an object of texts
    assert {"transfer": 2} == totals.seen
    assert [f"{path}: line 3"] == [one.where for one in totals.problems]
    assert [1_000_000, 3_000_000] == [getattr(e, "queue_ns", 0) for e in transport.events if getattr(e, "queue_ns", None)]


def test_an_empty_file(tmp_path: Path) -> None:
    """Nothing in, nothing out."""
    (tmp_path / "f").touch()

    assert (0, 0) == (run("vllm", tmp_path / "f")[0].records, run("trtllm-transfers", tmp_path / "f")[0].events)


def test_the_users_key(tmp_path: Path) -> None:
    """The key is made once, for its owner alone, and stays."""
    path = tmp_path / "state" / "fleet.key"
    key = user_key(path)

    assert (32, 0o600) == (len(key), path.stat().st_mode & 0o777)
    assert key == user_key(path)
    path.chmod(0o644)
    with pytest.raises(SettingsInvalid, match="0600"):
        user_key(path)


def test_quarantined_things_are_rows(tmp_path: Path) -> None:
    """What is broken inside a message of a known stream is an `error` event there, so that the store knows of it."""
    _, transport = run("vllm", written(tmp_path / "f", (message(0, {"type": "BlockStored"}, stored(1)),)))

    assert 1 == sum(isinstance(event, Error) for event in transport.events)
