"""Pinned memory: allocated at once, or refused by name. A device copies to and from it without the processor."""

import resource

import torch

from kvtrail_engine.errors import PinFailedError
from kvtrail_engine.settings import Pinning


def wants_pinned(choice: Pinning, device: torch.device) -> bool:
    """Whether memory on the way to a device is pinned."""
    return choice is Pinning.ALWAYS or (choice is Pinning.AUTO and device.type == "cuda")


def zeros(count: int, *, pinned: bool) -> torch.Tensor:
    """So many fp32 zeros on the CPU.

    Raises:
        PinFailedError: they cannot be pinned.
    """
    try:
        found = torch.zeros(count, dtype=torch.float32, pin_memory=pinned)
    except RuntimeError as exc:  # whatever the driver calls it
        raise PinFailedError(_problem(count * 4, 0, str(exc))) from exc
    if pinned and not found.is_pinned():
        raise PinFailedError(_problem(count * 4, 0, "the driver gave pageable memory"))
    return found


def _problem(asked_bytes: int, got_bytes: int, why: str) -> str:
    """Limit, asked, got, in one line."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} bytes"
    first = why.strip().splitlines()[0] if why.strip() else "no reason given"
    return f"asked to pin {asked_bytes} bytes, got {got_bytes}; limit of locked memory (ulimit -l): {limit}; {first}"
