"""`kvtrail drill all`: what must hold when something breaks, tried on the real engine and checked from its event log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kvtrail_engine.engine import Engine

from kvtrail_cli.drill.safety_clock import clock_step
from kvtrail_cli.drill.safety_device import device_reset
from kvtrail_cli.drill.safety_kafka import kafka_down
from kvtrail_cli.drill.safety_log import small_engine
from kvtrail_cli.drill.safety_memory import host_memory_pressure
from kvtrail_cli.drill.safety_remote import connector_timeout, remote_wrong_answer
from kvtrail_cli.drill.safety_shapes import SafetyDrill, SafetyDrills
from kvtrail_cli.drill.safety_stored import (
    disk_full,
    model_version_switch,
    nvme_queue_full,
    partial_write,
    permission_revoked,
    process_restart,
)
from kvtrail_cli.errors import PartMissing
from kvtrail_cli.output import Advance

DRILLS: Final[Mapping[str, Callable[[Path], SafetyDrill]]] = {
    "host-memory-pressure": host_memory_pressure,
    "nvme-queue-full": nvme_queue_full,
    "connector-timeout": connector_timeout,
    "partial-write": partial_write,
    "device-reset": device_reset,
    "process-restart": process_restart,
    "permission-revoked": permission_revoked,
    "model-version-switch": model_version_switch,
    "disk-full": disk_full,
    "remote-wrong-answer": remote_wrong_answer,
    "clock-step": clock_step,
    "kafka-down": kafka_down,
}
"""By name, in the order in which they run. Each takes a folder of its own, and some seconds.

Raises:
    PartMissing: it needs a program that is not installed.
"""


def run_drills(names: tuple[str, ...], advance: Advance) -> SafetyDrills:
    """Run drills one by one; each begins with an engine of its own. Blocks for some seconds each.

    Raises:
        EngineError: an engine cannot start, or failed.
    """
    done: list[SafetyDrill] = []
    for place, name in enumerate(names):
        advance(place, len(names))
        with TemporaryDirectory(prefix="kvtrail-drill-") as folder:
            done.append(_run(name, Path(folder)))
    advance(len(names), len(names))
    with TemporaryDirectory(prefix="kvtrail-drill-") as folder:
        settings = small_engine(Path(folder))
        label = Engine(settings)
        device = label.device_label
        label.close()
    return SafetyDrills(tuple(done), device, settings.floors_text())


def _run(name: str, folder: Path) -> SafetyDrill:
    """One drill; where a program is missing, a result that says so, and nothing of the engine."""
    try:
        return DRILLS[name](folder)
    except PartMissing as error:
        return SafetyDrill(name, "", f"not run: {error}", passed=False, detect_s=None, act_s=None, was_run=False)
