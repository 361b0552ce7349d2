"""A process whose engine loses its device, since nothing can give the device back to it: `python -m … FOLDER`.

It answers, stores, loses the device in mid-decode, and says what became of whom; the recording of it lies in the folder.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
from kvtrail_engine.drills.device_lost import lose_device
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineError
from kvtrail_engine.proof import sink
from kvtrail_engine.request import RequestHandle
from kvtrail_engine.settings import StepSettings
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import DecodeJoined

from kvtrail_cli.drill.safety_file import recording
from kvtrail_cli.drill.safety_log import EventLog, answer, ask, small_engine

ACTIVE: Final = range(10, 14)
_ACTIVE_TOKENS: Final = 120
_STEP_NS: Final = 5_000_000
_PATIENCE_S: Final = 10.0


class Lost(msgspec.Struct, frozen=True):
    """What such a process says: how the requests ended that were active, and how one that came after; its recorder's stream."""

    output: tuple[int, ...]
    active: tuple[str, ...]
    later: str
    epoch: int
    produced: int


def tiers_in(folder: Path) -> Path:
    """Where the engine before and the one after have their files."""
    return folder / "tiers"


def recording_in(folder: Path) -> Path:
    """Where the recorder of the engine that loses its device writes."""
    return folder / "before"


def main(folder: Path) -> None:
    """Run, and print what became of it as JSON. Ends without closing the engine, whose device would not answer."""
    with recording(recording_in(folder)) as written:
        log = EventLog()
        settings = replace(small_engine(tiers_in(folder)), step=StepSettings(floor_ns=_STEP_NS))
        engine = Engine(settings, [log.as_emitter(), written.recorder]).start()
        output = answer(engine, ask(1)).output
        sink(engine, Tier.NVME)
        handles = [engine.submit(replace(ask(number), output_tokens=_ACTIVE_TOKENS)) for number in ACTIVE]
        until_s = time.monotonic() + _PATIENCE_S
        while len(log.of(DecodeJoined)) <= len(handles) and time.monotonic() < until_s:
            time.sleep(0.01)
        lose_device(engine)
        ends = tuple(map(_end, handles))
        later = _later(engine)
    stream, produced = written.recorder.stream, written.recorder.produced
    sys.stdout.buffer.write(msgspec.json.encode(Lost(output, ends, later, stream.epoch, produced)))
    sys.stdout.flush()
    os._exit(0)


def _end(handle: RequestHandle) -> str:
    """How a request ended: by its outcome, or by an error, which is named; `waiting`: not at all."""
    try:
        return handle.result(_PATIENCE_S).outcome.value
    except EngineError as error:
        return type(error).__name__
    except TimeoutError:
        return "waiting"


def _later(engine: Engine) -> str:
    """How a request ends that comes when the device is lost."""
    try:
        return _end(engine.submit(ask(2)))
    except EngineError as error:
        return type(error).__name__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
