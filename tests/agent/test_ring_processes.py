"""Two processes on one ring: what one of them changes, the other sees before or after, never in between."""

import os
import subprocess
import sys
from pathlib import Path

from kvtrail_agent.errors import RingError
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.ring_reader import RingReader

from tests.agent import storm_process
from tests.agent.rings import dropped_in
from tests.agent.waiting import wait_for


def is_made(path: Path) -> bool:
    """Whether a ring can be opened."""
    try:
        open_ring(path).close()
    except RingError:
        return False
    return True


def test_a_growing_drop_is_always_whole(private_dir: Path) -> None:
    """While another process drops events as fast as it can, every look at its books shows a true and growing range."""
    path = private_dir / "storm.ring"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, storm_process.__file__, str(path)], env=environment) as storm:
        wait_for(lambda: is_made(path), "the other process's ring")
        reader = RingReader(open_ring(path))
        drops = []
        while storm.poll() is None:
            chunk = reader.read(10)
            reader.release(chunk)
            drops += dropped_in(chunk)
            if len(drops) > 800:
                storm.kill()

    assert len(drops) > 800, "the storm was over too soon"
    assert {("ENCODE", "ENCODE_ERROR"), ("RING", "FULL")} >= {drop[:2] for drop in drops}
    assert [1, *(last + 1 for *_, last in drops[:-1])] == [first for _, _, first, _ in drops]
