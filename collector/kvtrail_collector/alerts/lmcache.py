"""Orders as calls of LMCache's internal API (0.5): `PUT /bypass/add` and `/bypass/remove`, by the name of a backend. Pure.

LMCache bypasses a backend until it is told otherwise: nothing there ends by itself, as it does with our agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

import httpx
from kvtrail_schema.degrade import Action, ActionKind, DegradeOrder, Desired

BACKENDS: Final = MappingProxyType({"host": "LocalCPUBackend", "nvme": "LocalDiskBackend", "remote": "RemoteBackend"})
"""What our tiers are called there."""


def can(action: Action) -> bool:
    """Whether LMCache can do it: it has no control of what is fetched ahead, or of which prompts are taken in."""
    return action.kind in {ActionKind.DISABLE_TIER, ActionKind.GPU_ONLY}


def calls_of(url: str, order: DegradeOrder) -> Iterator[str]:
    """The addresses that are called by PUT; `url` is that of the API, without a path. Each may be called again."""
    verb = "add" if order.state is Desired.APPLIED else "remove"
    tiers = [order.action.tier] if order.action.tier is not None else list(BACKENDS)
    for tier in tiers:
        yield str(httpx.URL(f"{url.rstrip('/')}/bypass/{verb}").copy_with(params={"backend_name": BACKENDS[tier]}))
