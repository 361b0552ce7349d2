"""Each verb as a person runs it: what it prints, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import jsonschema
import pytest
from kvtrail_agent.version import VERSION
from kvtrail_collector.testing import RunningCollector

from tests.packages import ROOT

SCHEMA = json.loads((ROOT / "docs/reference/outputs.schema.json").read_text(encoding="utf-8"))
Done = subprocess.CompletedProcess[str]


def kvtrail(*words: str) -> Done:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "kvtrail_cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def test_loss_balances(filled: RunningCollector) -> None:
    """Everything that the recorder produced is stored; the verb says so and ends with 0."""
    done = kvtrail("loss", "--json", "--url", filled.url)
    answer = json.loads(done.stdout)
    (stream,) = answer["streams"]

    assert done.returncode == 0
    assert answer["balanced"] is True
    assert stream["stored"] == stream["produced"]
    assert stream["unaccounted"] == 0


def test_loss_for_people(filled: RunningCollector) -> None:
    """The table names the engine and says in words whether the books balance."""
    done = kvtrail("loss", "--url", filled.url)

    assert "Books: balanced." in done.stdout
    assert "cli" in done.stdout


def test_why_adds_up(filled: RunningCollector) -> None:
    """The parts of a request add up to its time to first token, and are those that its events tell."""
    done = kvtrail("why", "chat-7", "--json", "--url", filled.url)
    answer = json.loads(done.stdout)
    parts = {(part["component"], part["tier"]): part["ns"] for part in answer["parts"]}

    assert done.returncode == 0
    assert answer["ttft_ns"] == 37_000_000
    assert answer["ttft_ns"] == sum(parts.values())
    assert parts["tier_queue", "nvme"] == 10_000_000
    assert parts["storage_read", "nvme"] == 15_000_000
    assert answer["recompute_estimate_ns"] == 12_000_000


def test_why_for_people(filled: RunningCollector) -> None:
    """The waterfall shows each part with its tier, the sum, and what recomputing would have cost."""
    done = kvtrail("why", "chat-7", "--url", filled.url)

    assert "chat-7: 37.0 ms to the first token   (cpu-emulated)" in done.stdout
    assert "storage_read nvme" in done.stdout
    assert "12.0 ms" in done.stdout


def test_why_of_nobody(filled: RunningCollector) -> None:
    """A request that is not there is said to be not there, in one line, and the verb could not be done."""
    done = kvtrail("why", "chat-8", "--url", filled.url)

    assert done.returncode == 2
    assert "chat-8" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("words", [("why", "chat-7"), ("block", "7")], ids=lambda words: words[0])
def test_an_engine_that_is_not_there_is_named(filled: RunningCollector, words: tuple[str, ...]) -> None:
    """Of a misspelt engine it is said that it is misspelt, not that what was asked for is not stored."""
    done = kvtrail(*words, "--engine", "cly", "--url", filled.url)

    assert 2 == done.returncode
    assert "no engine 'cly'; streams; engines that were heard of: cli" in done.stderr


def test_version() -> None:
    """The command says which one it is."""
    done = kvtrail("--version")

    assert (0, f"kvtrail {VERSION}\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize(
    "words",
    [("diagnose", "--nope"), ("nope",), ("sql",), ("sql", "--rows", "x", "SELECT 1"), ("engine", "run", "--trace", "/nope")],
    ids=" ".join,
)
def test_wrong_words_take_one_line(words: tuple[str, ...]) -> None:
    """What is wrong, and where help is; a file that is not there has no line 0."""
    done = kvtrail(*words)

    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert "--help`" in done.stderr or done.stderr.startswith("kvtrail: /nope: cannot be read")


def test_without_words_there_is_help() -> None:
    """The help as it is asked for, and the status of something that was not done."""
    done = kvtrail("export")

    assert 2 == done.returncode
    assert "perfetto" in done.stdout + done.stderr


def test_settings_keep_their_types(filled: RunningCollector) -> None:
    """A number is a number for whoever reads the doctor's JSON, and a switch is one."""
    told = json.loads(kvtrail("doctor", "--json", "--url", filled.url).stdout)["settings"]
    theirs = httpx.get(f"{filled.url}/readyz", trust_env=False).json()["settings"]

    for settings in (told, theirs):
        values = {one["name"]: one["value"] for one in settings}
        assert isinstance(values["port"], int)
        assert [False, []] == [values["tls_in_front"], values["allowed_hosts"]]


def test_attribute_of_an_engine_that_is_not_there(filled: RunningCollector) -> None:
    """A misspelt engine is an error that names the known ones, not an engine without a spike."""
    done = kvtrail("attribute", "--engine", "cly", "--url", filled.url)

    assert done.returncode == 2
    assert "'cly'" in done.stderr
    assert "cli" in done.stderr


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A directory that cannot be made is named in one line; nothing shows a trace."""
    blocked = tmp_path / "file"
    blocked.touch()
    done = kvtrail("demo", "--headless", "--dir", str(blocked / "demo"))

    assert done.returncode == 2
    assert str(blocked) in done.stderr
    assert "Traceback" not in done.stderr


def test_attribute_says_that_it_does_not_know(filled: RunningCollector) -> None:
    """One request is no population: no window, no verdict, the reason in words, and an end that says undecided."""
    done = kvtrail("attribute", "--json", "--url", filled.url)
    answer = json.loads(done.stdout)

    assert done.returncode == 3
    assert answer["verdicts"] == []
    assert answer["why_not"]
    assert answer["device"] == "cpu-emulated"


@pytest.mark.parametrize("verb", ["loss", "attribute", "why chat-7", "doctor"])
def test_answers_have_the_published_shape(filled: RunningCollector, verb: str) -> None:
    """What `--json` prints is what the reference says that it prints."""
    done = kvtrail(*verb.split(), "--json", "--url", filled.url)
    answer = json.loads(done.stdout)

    jsonschema.validate(answer, SCHEMA | SCHEMA["answers"][verb.split(maxsplit=1)[0]])
    assert answer["schema"] == 1


@pytest.mark.parametrize("verb", [("loss",), ("attribute",), ("why", "r1")], ids=lambda words: words[0])
def test_nobody_answers(verb: tuple[str, ...], free_port: int) -> None:
    """Without a collector each verb says where it looked and what to do, and ends with 2."""
    done = kvtrail(*verb, "--url", f"http://127.0.0.1:{free_port}")

    assert done.returncode == 2
    assert f"no collector at http://127.0.0.1:{free_port}" in done.stderr
    assert "kvtrail collector serve" in done.stderr
    assert done.stderr.count("\n") == 1


def test_doctor(collector: RunningCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor prints each setting with its source, and each check; with all there it ends with 0."""
    monkeypatch.setenv("KVTRAIL_QUEUE_BATCHES", "17")
    done = kvtrail("doctor", "--json", "--url", collector.url)
    answer = json.loads(done.stdout)
    by_name = {setting["name"]: setting for setting in answer["settings"]}

    assert done.returncode == 0
    assert {"name": "queue_batches", "value": 17, "source": "KVTRAIL_QUEUE_BATCHES"} == by_name["queue_batches"]
    assert by_name["port"]["source"] == "default"
    assert all(check["ok"] for check in answer["checks"])


def test_doctor_without_collector(free_port: int) -> None:
    """A collector that is not there is a failed check with its mending, not a crash."""
    done = kvtrail("doctor", "--url", f"http://127.0.0.1:{free_port}")

    assert done.returncode == 1
    assert "kvtrail collector serve" in done.stdout.replace("\n", " ")


def test_wrong_setting(tmp_path: Path) -> None:
    """A wrong setting is named with where it stands and what is possible."""
    config = tmp_path / "kvtrail.toml"
    config.write_text("[collector]\nport = 70000\n")
    done = kvtrail("collector", "serve", "--config", str(config))

    assert done.returncode == 2
    assert "port" in done.stderr
    assert str(config) in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_trace(tmp_path: Path) -> None:
    """A wrong line of a trace is named with its number, before anything runs."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n{"timestamp": 0}\n')
    done = kvtrail("engine", "run", "--trace", str(trace), "--transport", "none")

    assert done.returncode == 2
    assert f"{trace}:2:" in done.stderr
    assert "Traceback" not in done.stderr


def test_engine_run(tmp_path: Path) -> None:
    """A short trace with one wrong line runs to its end when told to skip it, and says so."""
    trace = tmp_path / "trace.jsonl"
    good = '{"timestamp": 0, "input_length": 600, "output_length": 40, "hash_ids": [1, 2]}\n'
    trace.write_text(f"{good}garbage\n{good}")
    segments = tmp_path / "segments"
    flags = ["--trace", str(trace), "--skip-bad-lines", "--json", "--ring-dir", str(tmp_path / "rings")]
    done = kvtrail("engine", "run", "--transport", f"file://{segments}", *flags)
    answer = json.loads(done.stdout)

    assert done.returncode == 0
    assert answer["requests"] == answer["finished"] == 2
    assert answer["skipped_lines"] == [2]
    assert answer["delivered"] is True
    assert answer["device"] in {"cuda", "cpu-emulated"}
    assert list(segments.glob("*.segment"))


def test_demo_leaves_other_files_alone(tmp_path: Path) -> None:
    """A directory that is no demo's is not emptied."""
    (tmp_path / "thesis.txt").write_text("ten years")
    done = kvtrail("demo", "--headless", "--dir", str(tmp_path))

    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert (tmp_path / "thesis.txt").exists()
