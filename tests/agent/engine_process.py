"""A program for tests: an engine that records until it is killed, exits without a word, or forks.

`engine_process.py MODE RING_DIR TRANSPORT PROGRESS`: PROGRESS is a file of two words, written after each emit returned:
the last seq, and the shipper's process id.
"""

import mmap
import os
import sys
import time
from pathlib import Path

from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipping import ProcessShipping
from kvtrail_schema.identity import StepId
from kvtrail_schema.reasons import ErrorReason

LONGEST_S = 60.0


def start(ring_dir: Path, transport: str) -> Recorder:
    """A recorder with a small ring and a lively heartbeat."""
    settings = AgentSettings(
        engine="victim",
        transport=transport,
        ring_dir=ring_dir,
        slot_count=1 << 14,
        flush_rows=500,
        flush_interval_ms=20,
        heartbeat_interval_ms=100,
        close_timeout_ms=30_000,
    )
    return Recorder.start(settings)


def progress_of(path: Path) -> memoryview:
    """The shared words that outlive this process."""
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def emit_for_ever(recorder: Recorder, progress: memoryview) -> None:
    """Emit without an end of its own, with texts among the rest, slowly enough for a shipper beside it."""
    deadline = time.monotonic() + LONGEST_S
    number = 0
    while time.monotonic() < deadline:
        for _ in range(100):
            number += 1
            progress[0] = recorder.step_started(StepId(number))
        progress[0] = recorder.error(ErrorReason.IO, text=f"text {number}")
        time.sleep(0.002)


def fork_and_emit(recorder: Recorder, progress: memoryview) -> None:
    """Both sides of a fork emit; the child ends by itself, the parent after it."""
    progress[0] = recorder.step_started(StepId(1))
    child = os.fork()
    for number in range(100):
        recorder.step_started(StepId(1000 + number if child else 2000 + number))
    if child:
        os.waitpid(child, 0)
        recorder.close()
    sys.exit(0)


def main() -> None:
    """Do what the mode says."""
    mode, ring_dir, transport, progress_path = sys.argv[1:]
    recorder, progress = start(Path(ring_dir), transport), progress_of(Path(progress_path))
    assert isinstance(recorder.shipping, ProcessShipping)
    progress[1] = recorder.shipping.pid
    if mode == "for-ever":
        emit_for_ever(recorder, progress)
    elif mode == "fork":
        fork_and_emit(recorder, progress)
    else:
        for number in range(1000):
            progress[0] = recorder.step_started(StepId(number))


if __name__ == "__main__":
    main()
