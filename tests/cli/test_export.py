"""`kvtrail export`, `kvtrail dashboard` and the windows that people type: what is written, and what is told in one line."""

import socket
import stat
from pathlib import Path

import pytest
from kvtrail_cli.commands.dashboard import unanswered
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.stretch import Stretch, engine_of, stretch_of
from kvtrail_collector.engine_shapes import EngineRow, Engines
from kvtrail_collector.testing import RunningCollector
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from tests.cli.test_verbs import kvtrail

SECOND_NS = 1_000_000_000
ENGINE = EngineRow("e1", [0], 0, 100 * SECOND_NS, 1_000 * SECOND_NS, 5, 0)


def test_an_export_is_a_file_that_its_owner_alone_may_read(filled: RunningCollector, private_dir: Path) -> None:
    """What Perfetto takes, with the request in it; the file holds events, so it is nobody else's."""
    out = private_dir / "run.pftrace"
    done = kvtrail("export", "perfetto", "--out", str(out), "--url", filled.url)
    trace = Trace()
    trace.ParseFromString(out.read_bytes())

    assert done.returncode == 0, done.stderr
    assert "chat-7" in {packet.track_event.name for packet in trace.packet}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_engine_that_is_not_there_is_told_with_those_that_are(filled: RunningCollector, private_dir: Path) -> None:
    """One line, status 2, and no file."""
    out = private_dir / "run.parquet"
    done = kvtrail("export", "parquet", "--engine", "nobody", "--out", str(out), "--url", filled.url)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "engines are: cli" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("form", ["perfetto", "parquet"])
def test_nothing_takes_no_file_s_place(filled: RunningCollector, private_dir: Path, form: str) -> None:
    """A window without an event is an error, and what was there before stays."""
    out = private_dir / "run.out"
    out.write_text("dear")
    done = kvtrail("export", form, "--window", "7000000000..8000000000", "--out", str(out), "--url", filled.url)

    assert 2 == done.returncode
    assert "no event lies in it" in done.stderr
    assert "dear" == out.read_text()


def test_pages_without_a_collector_say_so(free_port: int) -> None:
    """They may be started first; why they are empty until then is told at once."""
    assert unanswered(f"http://127.0.0.1:{free_port}", None) is not None


def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    """Before the pages are loaded, and with what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = kvtrail("dashboard", "--port", str(port))

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"--port {port}" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (None, None)),
        ("last 40s", (60 * SECOND_NS, None)),
        ("last 1h", (0, None)),
        ("5..9", (5, 9)),
        ("5..", (5, None)),
        ("1970-01-01T00:17:00..1970-01-01T00:17:30+00:00", (20 * SECOND_NS, 50 * SECOND_NS)),
    ],
)
def test_a_window_is_understood_as_people_say_it(text: str | None, expected: tuple[int | None, int | None]) -> None:
    """The newest stretch, monotonic nanoseconds, or wall time."""
    assert Stretch(*expected) == stretch_of(text, ENGINE)


@pytest.mark.parametrize("text", ["", "yesterday", "9..5", "5..5", "a..b", "last hour"])
def test_what_is_no_window_is_told_with_what_is_one(text: str) -> None:
    """The error shows the forms."""
    with pytest.raises(InputInvalid, match="last 15m"):
        stretch_of(text, ENGINE)


def test_without_a_name_the_busiest_engine_is_meant() -> None:
    """The collector lists the busiest first."""
    other = EngineRow("e2", [0], 0, 0, 0, 1, 0)

    assert engine_of(Engines([ENGINE, other], [], []), None) is ENGINE
    assert engine_of(Engines([ENGINE, other], [], []), "e2") is other
