"""A program for outages: an engine under full load. `flood_process.py ORDERS`; writes what it produced beside the orders."""

import sys
import time
from pathlib import Path

import msgspec
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_schema.identity import RequestId, StepId

from tests.chaos.engine_process import wait_for_shipper

_SLICE_S = 0.01


class Flood(msgspec.Struct, frozen=True):
    """How much, for how long, and where to."""

    transport: str
    rings: str
    spool: str
    seconds: float
    events_per_s: int
    slot_count: int


def main() -> None:
    """Emit evenly, as a busy engine does."""
    path = Path(sys.argv[1])
    orders = msgspec.json.decode(path.read_bytes(), type=Flood)
    settings = AgentSettings(
        engine="flood",
        transport=orders.transport,
        ring_dir=Path(orders.rings),
        spool_dir=Path(orders.spool),
        slot_count=orders.slot_count,
        close_timeout_ms=100,
    )
    recorder = Recorder.start(settings)
    wait_for_shipper(recorder)
    begin, done = time.monotonic(), 0
    while (passed_s := time.monotonic() - begin) < orders.seconds:
        due = int(passed_s * orders.events_per_s)
        for number in range(done, due):
            recorder.tokens_emitted(RequestId(number % 997), StepId(number // 100), 1)
        done = due
        time.sleep(_SLICE_S)
    recorder.close()
    path.with_suffix(".produced").write_text(str(recorder.produced))


if __name__ == "__main__":
    main()
