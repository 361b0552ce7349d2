"""What the engine declares at its start: versions, devices, sizes, floors, and the settings that should be active."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from kvtrail_engine.runtime.device import label_of
from kvtrail_engine.settings import EngineSettings, TierSettings

ENGINE_VERSION = "0.1.0"
CGROUP = Path("/sys/fs/cgroup")
_PRIVATE = frozenset({"url", "username"})


def _plain(value: Any) -> Any:
    """Enums by their value; paths and addresses not at all: a manifest says nothing about where things lie."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        shown = {name: member for name, member in value.items() if not isinstance(member, Path) and name not in _PRIVATE}
        return {name: _plain(member) for name, member in shown.items()}
    return value


def _meminfo_bytes(field: str) -> int:
    """A line of /proc/meminfo; 0 where there is none."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")]
    return found[0] if found else 0


def _cgroup_bytes(name: str) -> int | None:
    """A limit or a gauge of this process's cgroup; None where there is none."""
    try:
        text = (CGROUP / name).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def memory_limit_bytes() -> int:
    """The lowest memory limit of the process: its cgroup's, else all there is."""
    total_bytes = _meminfo_bytes("MemTotal")
    limit_bytes = _cgroup_bytes("memory.max")
    return total_bytes if limit_bytes is None else min(limit_bytes, total_bytes or limit_bytes)


def memory_used_bytes() -> int:
    """Memory in use without the page cache."""
    return _meminfo_bytes("MemTotal") - _meminfo_bytes("MemAvailable")


def _device(device: torch.device) -> dict[str, Any]:
    """The device by name, with its driver's version."""
    if device.type != "cuda":
        return {"device": label_of(device), "gpu": None, "driver": None, "processor": platform.machine()}
    properties = torch.cuda.get_device_properties(device)
    return {"device": label_of(device), "gpu": properties.name, "driver": torch.version.cuda}


def manifest_text(settings: EngineSettings, device: torch.device, nvme: Mapping[str, str | int]) -> str:
    """The JSON of `manifest_declared`."""
    model = settings.model
    return json.dumps(
        {
            **_device(device),
            "engine": "kvtrail-engine",
            "versions": {"engine": ENGINE_VERSION, "torch": torch.__version__, "python": platform.python_version()},
            "model": {"name": "kvtrail-tiny", "version": f"seed{settings.seed}", "dtype": "fp32", **asdict(model)},
            "tokenizer": "ids",
            "block_tokens": settings.block_tokens,
            "block_bytes": settings.block_bytes,
            "host_tier_bytes": tier_bytes(settings, settings.host),
            "memory_limit_bytes": memory_limit_bytes(),
            "memory_used_bytes": memory_used_bytes(),
            "floors": settings.floors_text(),
            "nvme": dict(nvme),
            "settings": _plain(asdict(settings)),
        },
        separators=(",", ":"),
    )


def tier_bytes(settings: EngineSettings, tier: TierSettings) -> int:
    """What a tier can hold."""
    return tier.slots * settings.block_bytes
