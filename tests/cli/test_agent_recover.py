"""`kvtrail agent recover`, as an operator runs it over what a dead engine left."""

import json
from pathlib import Path

import jsonschema
from kvtrail_agent.emit_methods import EmitMethods
from kvtrail_agent.ring_file import create_ring
from kvtrail_agent.spool import Spool
from kvtrail_collector.testing import RunningCollector
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.identity import Epoch, Rank, StepId, Stream

from tests.agent.frames import frame_of
from tests.cli.test_verbs import SCHEMA, kvtrail


def leave_ring(folder: Path) -> None:
    """A ring with three events, whose writer is dead."""
    ring = create_ring(folder / "left.ring", Stream("left", Epoch(5), Rank(0)), 1 << 10, 1 << 16)
    writer = EmitMethods(ring, SystemClock())
    for number in range(3):
        writer.step_started(StepId(number))
    ring.close()


def leave_spool(folder: Path) -> None:
    """A spool with one frame of three events, whose ring is gone."""
    spool = Spool(folder, "gone-0-7", folder / "gone.ring", 1 << 20)
    spool.append(frame_of(1)[0])
    spool.close()


def test_what_was_left_is_sent(collector: RunningCollector, private_dir: Path) -> None:
    """Ring and spool are at the collector and gone from the directory; the answer says so and has its shape."""
    leave_ring(private_dir)
    leave_spool(private_dir)
    done = kvtrail("agent", "recover", str(private_dir), "--transport", collector.url, "--json")
    answer = json.loads(done.stdout)
    loss = json.loads(kvtrail("loss", "--json", "--url", collector.url).stdout)

    assert done.returncode == 0
    assert {"rings": 1, "spools": 1, "left": 0, "schema": 1} == answer
    assert {"left": 3, "test-engine": 3} == {stream["engine"]: stream["stored"] for stream in loss["streams"]}
    assert loss["balanced"] is True
    assert list(private_dir.iterdir()) == []
    jsonschema.validate(answer, SCHEMA["$defs"]["AgentRecover"] | {"$defs": SCHEMA["$defs"]})


def test_what_nobody_takes_stays(private_dir: Path, free_port: int) -> None:
    """Without a collector the verb ends with 1 after a while, and everything is where it was."""
    leave_spool(private_dir)
    done = kvtrail("agent", "recover", str(private_dir), "--transport", f"http://127.0.0.1:{free_port}")

    assert done.returncode == 1
    assert "1 left" in done.stdout
    assert len(list((private_dir / "gone-0-7").glob("*.segment"))) == 1


def test_a_directory_that_is_not_there_is_an_error(private_dir: Path) -> None:
    """It ends with 2 and one line that says what to give."""
    done = kvtrail("agent", "recover", str(private_dir / "nowhere"))

    assert done.returncode == 2
    assert "give the ring_dir or the spool_dir" in done.stderr
