"""A program for chaos: an engine that records a story of blocks, and beside it writes down what it recorded.

`engine_process.py ORDERS`: a JSON file with its `Orders`. Ends after its seconds, with an orderly close.
"""

import os
import sys
import time
from pathlib import Path

import msgspec
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.ring_layout import READER_PID
from kvtrail_agent.settings import AgentSettings
from kvtrail_schema.events import Event
from kvtrail_schema.kinds import FIELDS_OF, kind_of

from tests.chaos.story import BlockStory

GROUP = 20


class Orders(msgspec.Struct, frozen=True):
    """What the engine is told."""

    engine: str
    transport: str
    rings: str
    spool: str
    journal: str
    seed: int
    seconds: float
    events_per_s: int
    slot_count: int
    spool_bytes: int


def record(recorder: Recorder, event: Event) -> Event:
    """Emit an event; what was recorded, under its seq."""
    kind = kind_of(event)
    present = {name: value for name in FIELDS_OF[kind] if (value := getattr(event, name)) is not None}
    t_ns = time.monotonic_ns()
    seq = getattr(recorder, kind.name.lower())(**present, t_ns=t_ns)
    return msgspec.structs.replace(event, seq=seq, t_ns=t_ns)


def run(orders: Orders, recorder: Recorder, journal: int) -> None:
    """Record in small groups, each on the journal once its emits returned."""
    events = BlockStory(orders.seed).events()
    begin = time.monotonic()
    done = 0
    while (now := time.monotonic()) < begin + orders.seconds:
        if done > (now - begin) * orders.events_per_s:
            time.sleep(0.005)
            continue
        group = [record(recorder, next(events)) for _ in range(GROUP)]
        done += GROUP
        os.write(journal, b"".join(msgspec.json.encode(event) + b"\n" for event in group))


def wait_for_shipper(recorder: Recorder) -> None:
    """Begin when there is somebody to be hurt: an engine takes longer to load than its shipper takes to start."""
    until = time.monotonic() + 30
    while not recorder._ring.word(READER_PID) and time.monotonic() < until:
        time.sleep(0.01)


def main() -> None:
    """Do as ordered."""
    orders = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Orders)
    settings = AgentSettings(
        engine=orders.engine,
        transport=orders.transport,
        ring_dir=Path(orders.rings),
        spool_dir=Path(orders.spool),
        spool_bytes=orders.spool_bytes,
        slot_count=orders.slot_count,
        text_bytes=1 << 16,
        flush_rows=500,
        flush_interval_ms=20,
        heartbeat_interval_ms=100,
        close_timeout_ms=200,
    )
    recorder = Recorder.start(settings)
    journal = os.open(f"{orders.journal}-{recorder.stream.epoch}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    wait_for_shipper(recorder)
    run(orders, recorder, journal)
    recorder.close()


if __name__ == "__main__":
    main()
