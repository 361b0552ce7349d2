"""Promises of `kvtrail diagnose`: a file, standard input and a store are judged alike; the status says whether all is well."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.errors import CommandError, command_errors
from kvtrail_cli.main import APP
from kvtrail_collector.diagnose_file import events_of_lines
from kvtrail_collector.store import Incoming, Store
from kvtrail_schema.batch import DecodedBatch
from kvtrail_schema.jsonl import read_lines

from tests.cases.stories import FOLDER
from tests.collector.attribution.test_mechanisms import filled
from tests.collector.frames import header, table
from tests.collector.gate_runs import Fate, recorded
from tests.collector.gate_runs import run as runs

FIRES = FOLDER / "over-its-cap" / "fires.jsonl"
CONTROL = FOLDER / "over-its-cap" / "control.jsonl"


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command, as a person runs it."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "diagnose", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=100, check=False)


def test_a_file_that_is_ill() -> None:
    """The verdict is told with figures and something to do, and the status is 1."""
    done = run(str(FIRES))

    assert (1, "") == (done.returncode, done.stderr)
    assert "CAP_EXCEEDED on nvme" in done.stdout
    assert "evict down to the cap" in done.stdout
    assert "missing: " in done.stdout


def test_a_file_that_is_well_as_json_from_standard_input() -> None:
    """Nothing wrong is status 0; JSON is one object of the published shape."""
    done = run("-", "--json", stdin=CONTROL.read_text())
    answer = json.loads(done.stdout)

    assert (0, "") == (done.returncode, done.stderr)
    assert (1, [], 1.0) == (answer["schema"], answer["verdicts"], answer["coverage"])


def test_a_store_is_judged_like_the_file(tmp_path: Path) -> None:
    """The verdict on a store is that on the events in it."""
    db, lines = tmp_path / "own.duckdb", FIRES.read_text().splitlines()
    held = events_of_lines(lines)
    with Store.open(str(db)) as store:
        rows = held.table.drop_columns(["stream_id"])
        rows = rows.append_column("extra", [[None] * rows.num_rows]).cast(table([]).schema)
        store.submit(Incoming(DecodedBatch(header([int(str(seq)) for seq in rows["seq"].to_pylist()]), rows), 1)).result(30)
    done = run("--db", str(db), "--json")

    assert 1 == done.returncode, done.stderr
    assert ["CAP_EXCEEDED"] == [verdict["code"] for verdict in json.loads(done.stdout)["verdicts"]]


def test_a_spike_that_nobody_can_explain_is_not_all_well(tmp_path: Path) -> None:
    """Requests were slower and no code says why: the first line says so, then what is known of it; the status is undecided."""
    events = sorted(filled(), key=lambda event: event.t_ns)
    held = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, start=1)]
    done = run(str(recorded(tmp_path / "run", held)))

    assert 3 == done.returncode, done.stderr
    assert done.stdout.startswith("Requests were slower for a while, and it is not known why, in ")
    assert "no verdict on the spike: " in done.stdout
    assert "note: nvme was still filling" in done.stdout


def test_a_recording_is_judged_like_the_file(tmp_path: Path) -> None:
    """What a recorder wrote into a folder needs no collector: the verdict on it is that on the same events in a file."""
    held = [line.event for line in read_lines(FIRES.read_text().splitlines())]
    done = run(str(recorded(tmp_path / "run", held)), "--json")

    assert 1 == done.returncode, done.stderr
    assert ["CAP_EXCEEDED"] == [verdict["code"] for verdict in json.loads(done.stdout)["verdicts"]]


def test_events_may_be_in_a_file_of_any_name(tmp_path: Path) -> None:
    """JSON Lines are read as such also where a recorder would name a segment so."""
    (tmp_path / "mine.open").write_text(FIRES.read_text())

    assert 1 == run(str(tmp_path / "mine.open")).returncode


def test_what_is_no_recording_is_told_apart(tmp_path: Path) -> None:
    """One of its files, an empty folder, and the folder around one: each error says what to give."""
    around = tmp_path / "around"
    around.mkdir()
    folder = recorded(around / "run", runs([Fate.FINISHED] * 3))
    (tmp_path / "empty").mkdir()
    wrong = {
        next(folder.iterdir()): f"give the folder that it lies in, {folder}",
        tmp_path / "empty": "holds no recording",
        around: "run does: give that",
    }
    for path, advice in wrong.items():
        with pytest.raises(CommandError, match=advice), command_errors():
            APP(["diagnose", str(path)], standalone_mode=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere.jsonl",),
        ("--db", "nowhere.duckdb"),
        (str(FIRES), "--db", "x"),
        (str(FIRES), "--thresholds", "nowhere.toml"),
        (str(FIRES), "--engine", "nowhere"),
        ("--thresholds", "nowhere.toml", "--url", "http://127.0.0.1:9"),
    ],
    ids=["no file", "no store", "both", "no thresholds", "engine of a file", "thresholds of a collector"],
)
def test_what_cannot_be_done_is_said(arguments: tuple[str, ...]) -> None:
    """A wrong place, and a flag that would be left out of account, is an error that names it, and no answer."""
    with pytest.raises(CommandError, match=r"nowhere|both"), command_errors():
        APP(["diagnose", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"\x8d\xff\n\x00\n", "none of its 2 lines"), (b"[1]\nno\n", "none of its 2 lines")],
    ids=["empty", "binary", "text"],
)
def test_a_file_without_an_event_is_no_healthy_one(tmp_path: Path, content: bytes, why: str) -> None:
    """A wrong file is an error that names it, in words for people, and never the answer that nothing is wrong."""
    path = tmp_path / "other.bin"
    path.write_bytes(content)

    with pytest.raises(CommandError, match=f"other.bin: {why}") as raised, command_errors():
        APP(["diagnose", str(path)], standalone_mode=False)
    assert "codec" not in str(raised.value)


def test_lines_of_a_newer_version_are_told() -> None:
    """A file of which nothing is understood may be of a newer version: that is a verdict, and no error."""
    done = run("-", stdin='{"t_ms": 1, "kind": "from_the_future"}')

    assert 1 == done.returncode, done.stderr
    assert "SCHEMA_UNKNOWN" in done.stdout


def test_how_many_lines_could_not_be_read_is_told() -> None:
    """Three of them are shown, and of the others it is said that there are more."""
    done = run("-", stdin=CONTROL.read_text() + "x\n" * 10)

    assert "10 lines: could not be read" in done.stdout
    assert "; and 7 more" in " ".join(done.stdout.split())
