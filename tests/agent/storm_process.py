"""A program for tests: a writer in another process, all of whose events are refused, as fast as it can.

`storm_process.py RING`: until it is killed, or a while has passed.
"""

import sys
import time
from pathlib import Path

from kvtrail_agent.ring_file import create_ring
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.identity import StepId

from tests.agent.rings import SMALLEST_SLOTS, SMALLEST_TEXTS, STREAM, writer_class

LONGEST_S = 30.0


def main() -> None:
    """Make the newest entry of the table of drops grow all the time."""
    ring = create_ring(Path(sys.argv[1]), STREAM, SMALLEST_SLOTS, SMALLEST_TEXTS)
    writer = writer_class()(ring, SystemClock())
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        for _ in range(1000):
            writer.step_started(StepId(-1))


if __name__ == "__main__":
    main()
