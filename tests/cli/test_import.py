"""Promises of `kvtrail import`: what is in a file comes where it shall, what is wrong is said, and nothing comes twice."""

from pathlib import Path

import msgspec
import pytest
from kvtrail_cli.importing.shapes import Imported
from kvtrail_cli.main import APP
from kvtrail_collector.store import Store
from kvtrail_collector.testing import running_collector
from typer.testing import CliRunner, Result

from tests.attach.importers.cases import TRTLLM, VLLM


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of this test's user lies in this test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Messages of vLLM in a file."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(record) for record in VLLM.records))
    return path


def invoke(*arguments: str) -> Result:
    """The command."""
    return CliRunner().invoke(APP, ["import", *arguments])


def answer_of(*arguments: str) -> Imported:
    """What the command answers with --json."""
    return msgspec.json.decode(invoke(*arguments, "--json").stdout, type=Imported)


def stored_rows(path: Path) -> int:
    """The events in a store."""
    with Store.open(str(path)) as store, store.read() as cursor:
        (row,) = cursor.execute("SELECT count(*) FROM events").fetchall()
        return int(row[0])


def test_into_a_store_once(sample: Path, private_dir: Path) -> None:
    """All events are stored, and importing the file again stores none of them twice; the books are balanced."""
    path = private_dir / "store.duckdb"
    first = answer_of("vllm", str(sample), "--db", str(path))
    before = stored_rows(path)
    answer_of("vllm", str(sample), "--db", str(path))

    assert first.events == before == stored_rows(path)
    assert VLLM.seen == first.seen


def test_into_a_collector(sample: Path) -> None:
    """A running collector takes the events; each stream says that it ended, and nothing of it is unaccounted."""
    with running_collector() as collector:
        answer = answer_of("vllm", str(sample), "--to", collector.url)
        done = CliRunner().invoke(APP, ["loss", "--url", collector.url, "--json"])

    assert 0 == done.exit_code, done.output
    assert len(answer.streams) == len(msgspec.json.decode(done.stdout)["streams"])


def test_into_a_file_that_diagnose_reads(sample: Path, tmp_path: Path) -> None:
    """The file of JSON Lines holds all events, for its owner alone, and `kvtrail diagnose` reads each line."""
    out = tmp_path / "out.jsonl"
    answer = answer_of("vllm", str(sample), "--out", str(out))
    done = CliRunner().invoke(APP, ["diagnose", str(out), "--json"])

    assert answer.events == len(out.read_text().splitlines())
    assert 0o600 == out.stat().st_mode & 0o777
    assert "could not be read" not in done.stdout


def test_what_is_wrong_is_said(sample: Path, tmp_path: Path) -> None:
    """A broken line makes the answer bad: told with file, line and what to do; the rest is imported."""
    sample.write_bytes(sample.read_bytes() + b"\n{no json\n")
    done = invoke("vllm", str(sample), "--out", str(tmp_path / "o"))
    answer = answer_of("vllm", str(sample), "--out", str(tmp_path / "o"))

    assert 1 == done.exit_code
    assert f"{sample}: line {len(VLLM.records) + 1}" in done.stdout
    assert [1, "mend"] == [answer.quarantined, answer.problems[0].do.split()[0]]
    assert VLLM.seen == answer.seen


def test_what_a_format_cannot_tell_is_said(tmp_path: Path) -> None:
    """People and programs read what the format has no word for, and what follows from that."""
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(record) for record in TRTLLM.records))
    done = invoke("trtllm", str(path), "--out", str(tmp_path / "o"))

    assert 0 == done.exit_code, done.output
    assert "latency verdicts of tiers unavailable" in done.stdout
    assert any("estimate" in one.so_what for one in answer_of("trtllm", str(path), "--out", str(tmp_path / "o")).missing)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["vlm", "FILE"], "none of vllm"),
        (["vllm", "FILE.not"], "no such file"),
        (["vllm", "FILE", "--db", "a", "--out", "b"], "give one of them"),
        (["vllm", "FILE", "--key-file", "FILE"], "0600"),
        (["vllm", "FILE", "--to", "gopher://x"], "scheme"),
    ],
    ids=["format", "file", "places", "key", "transport"],
)
def test_what_cannot_be_done(sample: Path, arguments: list[str], problem: str) -> None:
    """A wrong word is an error that says what is possible; nothing is imported."""
    done = invoke(*(word.replace("FILE", str(sample)) for word in arguments))

    assert done.exit_code != 0
    assert problem in str(done.exception)


def test_help_lists_the_formats() -> None:
    """The help names every format."""
    shown = invoke("--help").stdout

    assert "trtllm-transfers" in shown
    assert "mooncake-trace" in shown
