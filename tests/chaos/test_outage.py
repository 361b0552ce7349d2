"""The other side gone for longer than the ring holds, under full load: nothing is lost, and it is caught up with.

`KVTRAIL_LONG=1`: a minute at 50,000 events a second, with the settings that an operator gets.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest
from kvtrail_agent.shipping import LOG_NAME

from tests.chaos import flood_process
from tests.chaos.flood_process import Flood
from tests.chaos.parts import BROKER, NETWORK, Part
from tests.chaos.test_chaos import world_in
from tests.chaos.world import World, wait_until


class Outage(NamedTuple):
    """How long nobody is there, at which load, with which ring."""

    away_s: float
    events_per_s: int
    slot_count: int


OUTAGE: Final = Outage(60, 50_000, 1 << 18) if os.environ.get("KVTRAIL_LONG") == "1" else Outage(3, 10_000, 1 << 14)

OUTAGES: Final = ((NETWORK, "cut"), (NETWORK, "stall"), (BROKER, "kill"), (BROKER, "pause"))


def start(world: World) -> Path:
    """Start the flood; the file of its orders."""
    path = world.folder / "flood.json"
    seconds = OUTAGE.away_s + 4
    flood = Flood(
        transport=world.route.transport,
        rings=str(world.rings),
        spool=str(world.spool),
        seconds=seconds,
        events_per_s=OUTAGE.events_per_s,
        slot_count=OUTAGE.slot_count,
    )
    path.write_bytes(msgspec.json.encode(flood))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    world.engine = subprocess.Popen([sys.executable, flood_process.__file__, str(path)], env=environment)
    return path


def stored(world: World) -> int:
    """How many events the collector has: behind a broker all of them only some time after nothing waits on this host."""
    return sum(stream["stored"] for stream in world.collector.streams("flood"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("part", "hurt"), OUTAGES, ids=lambda value: getattr(value, "name", value))
def test_an_outage_under_full_load_loses_nothing(part: Part, hurt: str, private_dir: Path, free_port: int) -> None:
    """Refused connections, ones that hang, a broker that is killed: nothing arrives meanwhile, and in the end all that was
    produced is stored, nothing dropped, nothing left on this host.
    """
    (act,) = [one for one in part.hurts if one.name == hurt]
    with world_in(private_dir, free_port, with_broker=part is BROKER) as world:
        path = start(world)
        wait_until(lambda: world.collector.streams("flood"), 30, "a first event")
        time.sleep(2)
        act.begin(world)
        time.sleep(OUTAGE.away_s / 2)  # by then what had passed before is stored
        early = stored(world)
        time.sleep(OUTAGE.away_s / 2)
        late = stored(world)
        spooled = sum(file.stat().st_size for file in world.spool.glob("*/*.segment"))
        act.mend(world)
        mended = time.monotonic()
        world.settle(60 + 3 * OUTAGE.away_s)
        produced = int(path.with_suffix(".produced").read_text())
        wait_until(lambda: stored(world) == produced, 60 + OUTAGE.away_s, "whole stream at the collector")
        caught_up_s = time.monotonic() - mended
        (stream,) = world.collector.streams("flood")
        said_by_shipper = (world.spool / LOG_NAME).read_text()
    figures = f"{produced} events, {spooled} bytes spooled, caught up {caught_up_s:.1f} s after the outage (cpu-emulated)"
    said = f"{part.name} {hurt}: {figures}"
    print(said, said_by_shipper)  # noqa: T201 - the figures of the long run, shown by `-s`

    assert early == late < produced
    assert stream["dropped"] == []
    assert stream["unaccounted"] == 0
    assert (produced, produced) == (stream["produced"], stream["stored"])
