"""Real processes and the spool: nobody there when an engine ends, and still nothing is lost, and nobody is held up."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings, ShipperConfig
from kvtrail_agent.shipper_process import open_spool
from kvtrail_agent.shipping import LOG_NAME, open_log
from kvtrail_schema.batch import StreamState

from tests.agent.deliveries import Delivered, deliveries
from tests.agent.test_processes import NOWHERE
from tests.agent.waiting import PATIENCE_S, wait_for
from tests.chaos import engine_process
from tests.chaos.engine_process import Orders
from tests.chaos.verdict import journal_of


def run_engine(folder: Path, transport: str) -> "subprocess.CompletedProcess[str]":
    """An engine from start to end, all that it says caught."""
    orders = Orders(
        engine="victim",
        transport=transport,
        rings=str(folder / "rings"),
        spool=str(folder / "spool"),
        journal=str(folder / "journal"),
        seed=1,
        seconds=1.0,
        events_per_s=3000,
        slot_count=1 << 13,
        spool_bytes=1 << 20,
    )
    path = folder / "orders.json"
    path.write_bytes(msgspec.json.encode(orders))
    command = [sys.executable, engine_process.__file__, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)


def shipper_pids(folder: Path) -> list[int]:
    """The shippers of a folder's rings that are at work."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(str(folder / "rings").encode()) for word in words):
            found.append(int(path.parent.name))
    return found


def send_the_rest(folder: Path) -> dict[int, Delivered]:
    """Let another engine start and end on the same directories, with somebody there; what arrived of others."""
    segments = folder / "segments"
    segments.mkdir()
    settings = AgentSettings(
        engine="next", transport=segments.as_uri(), ring_dir=folder / "rings", spool_dir=folder / "spool", flush_interval_ms=20
    )
    following = Recorder.start(settings)
    wait_for(lambda: not [path for path in (folder / "spool").iterdir() if path.is_dir()], "an empty spool")
    following.close(PATIENCE_S)
    wait_for(lambda: not list((folder / "rings").glob("*.ring")), "no ring")
    wait_for(lambda: all(shipping.has_ended for shipping in following._left_behind), "the end of other shippers")
    found = deliveries(segments)
    del found[following.stream.epoch]
    return found


def test_a_shipper_that_lingers_holds_nobody_up(private_dir: Path) -> None:
    """With nobody taking anything the engine's output ends with the engine, and what the shipper says is in its own file."""
    begin = time.monotonic()
    done = run_engine(private_dir, NOWHERE)
    took_s = time.monotonic() - begin
    lingering = shipper_pids(private_dir)
    log = private_dir / "spool" / LOG_NAME
    wait_for(lambda: "victim: events do not leave, they go into the spool" in log.read_text(), "the shipper's word")
    for pid in lingering:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not shipper_pids(private_dir), "the end of the shipper")

    assert (done.returncode, done.stderr) == (0, "")
    assert len(lingering) == 1
    assert took_s < 25
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_next_start_sends_what_a_lingering_shipper_had(number: int, private_dir: Path) -> None:
    """Whether it was told to end or was killed: every event of the dead engine arrives, in a stream that says how it ended."""
    run_engine(private_dir, NOWHERE)
    for pid in shipper_pids(private_dir):
        os.kill(pid, number)
    wait_for(lambda: not shipper_pids(private_dir), "the end of the shipper")
    (stream,) = send_the_rest(private_dir).values()
    (journal,) = private_dir.glob("journal-*")
    recorded = {event.seq: event for event in journal_of(journal)}

    assert set() == stream.unaccounted
    assert recorded.keys() <= stream.events.keys() | stream.dropped
    assert stream.dropped == set(), "the spool had room"
    assert recorded.items() <= stream.events.items()
    assert StreamState.STOPPED == stream.headers[-1].state


def test_a_log_is_bounded(private_dir: Path) -> None:
    """A megabyte, and the megabyte before; where it cannot be made there is none, and no error."""
    log = private_dir / LOG_NAME
    for _ in range(3):
        with open_log(private_dir) as file:
            file.write(b"x" * (1 << 20) + b"\n")
    with open_log(private_dir) as file:
        file.write(b"last\n")
    sizes = [path.stat().st_size for path in private_dir.iterdir()]
    with open_log(log / "below a file") as nowhere:
        nowhere.write(b"said to nobody")

    assert log.read_bytes() == b"last\n"
    assert len(sizes) == 2
    assert sum(sizes) < 3 << 20


def test_a_spool_directory_that_is_open_to_others_is_not_used(private_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever can rename files in it could put frames into our name."""
    (private_dir / "spool").mkdir(0o755)
    settings = AgentSettings(engine="open", transport=NOWHERE, ring_dir=private_dir, spool_dir=private_dir / "spool")
    config = ShipperConfig(private_dir / "open.ring", settings)

    assert open_spool(config.ring, config.settings) is None
    assert "chmod 700" in capsys.readouterr().err


def test_a_shipper_loads_no_pandas() -> None:
    """Pyarrow would, at its first conversion, if it is installed: half a second in which nobody reads the ring."""
    program = (
        "import sys\n"
        "from kvtrail_agent.shipper_process import WithoutPandas\n"
        "sys.meta_path.insert(0, WithoutPandas())\n"
        "import pyarrow\n"
        "pyarrow.array([1, 2]).to_pylist()\n"
        "print('pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "False"
