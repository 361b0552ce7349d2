"""Drill: the device is lost under active requests, and an engine begins anew on the files of the one that lost it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineFailedError
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Error, StepStarted, SwapInLoaded
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.reasons import ErrorReason

from kvtrail_cli.drill.device_process import Lost, recording_in, tiers_in
from kvtrail_cli.drill.safety_file import ENGINE, OwnFile, read_file
from kvtrail_cli.drill.safety_log import answer, ask, logged, result_of, small_engine
from kvtrail_cli.drill.safety_shapes import SafetyDrill
from kvtrail_cli.errors import CommandError

_LONGEST_S: Final = 180.0
_FAILED: Final = EngineFailedError.__name__


def device_reset(folder: Path) -> SafetyDrill:
    """A device that answers nothing any more (simulated where there is none): all hear of it, and a new engine goes on."""
    lost, before = _lose(folder)
    with logged(folder) as log, Engine(small_engine(tiers_in(folder)), log.observers) as engine:
        after = answer(engine, ask(1))
    error = next((event for event in before.events if isinstance(event, Error)), None)
    steps = [event for event in before.events if isinstance(event, StepStarted) and error and event.t_ns <= error.t_ns]
    loaded = log.first(SwapInLoaded, lambda event: event.src is Tier.NVME)
    found = {
        "the loss is told as the device's": error is not None and error.reason is ErrorReason.DEVICE,
        "who was active hears of it, and nobody waits": set(lost.active) == {_FAILED},
        "no more is taken in": lost.later == _FAILED,
        "its recorder's file has each event": before.is_whole and not before.broken(()),
        "the next engine reads what was stored": after.restored.get(Tier.NVME, 0) > 0,
        "the answer is the same": after.output == lost.output,
    }
    expected = "active requests fail at once, nothing of the lost memory is used, a new engine reads what is stored"
    return result_of("device-reset", expected, found, (steps[-1] if steps else None, error, loaded), log)


def _lose(folder: Path) -> tuple[Lost, OwnFile]:
    """Run the process that loses its device; what it said, and what its recorder wrote.

    Raises:
        CommandError: it said nothing, or nothing in time.
    """
    command = [sys.executable, "-m", "kvtrail_cli.drill.device_process", str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=_LONGEST_S)  # noqa: S603 - our own command
    except subprocess.TimeoutExpired as error:
        message = (
            f"device-reset: the engine's process did not end within {_LONGEST_S:g} s: the machine is too busy, run it again"
        )
        raise CommandError(message) from error
    if done.returncode:
        message = f"device-reset: the engine's process ended by itself: {done.stderr.decode(errors='replace')[-500:]}"
        raise CommandError(message)
    lost = msgspec.json.decode(done.stdout, type=Lost)
    stream = Stream(ENGINE, Epoch(lost.epoch), Rank(0))
    return lost, read_file(recording_in(folder) / "events", stream, lost.produced)
