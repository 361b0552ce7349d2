"""A small language for tests of the engine: tiny settings, prompts by number, and stories of what was told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from kvtrail_engine.request import RequestSpec, Tokens
from kvtrail_engine.settings import DeviceChoice, EngineSettings, RestorePolicy, TierSettings
from kvtrail_schema.events import Event

BLOCK = 32


def tiny(data_dir: Path, **changes: Any) -> EngineSettings:
    """An engine that starts in no time: 40 blocks on the gpu, as many on host, 256 on nvme, no floors, always restores."""
    settings = EngineSettings(
        data_dir=data_dir,
        device=DeviceChoice.CPU,
        gpu=TierSettings(slots=40),
        host=TierSettings(slots=40),
        nvme=TierSettings(slots=256, workers=2),
        host_low_slots=8,
        restore_policy=RestorePolicy.RESTORE,
    )
    return replace(settings, **changes)


def prompt(number: int, tokens: int = 5 * BLOCK) -> Tokens:
    """The prompt of this number; two numbers share no block."""
    return np.random.default_rng(number).integers(0, 1024, tokens, dtype=np.int64)


def ask(number: int, tokens: int = 5 * BLOCK, output_tokens: int = 3, **more: Any) -> RequestSpec:
    """A request for the prompt of this number."""
    return RequestSpec(f"r{number}", prompt(number, tokens), output_tokens, **more)


def told(events: Sequence[Event], req: int) -> list[Event]:
    """What was told about one request, in order."""
    return [event for event in events if getattr(event, "req", None) == req]


def names(events: Sequence[Event]) -> list[str]:
    """The kinds of events, in order."""
    return [str(event.__struct_config__.tag) for event in events]
