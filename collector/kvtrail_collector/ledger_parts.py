"""The names under which time is accounted: components in the order of tables, labels, parts."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec
from kvtrail_schema.enums import Tier


class Component(StrEnum):
    """What a nanosecond of a request was spent on; the order is that of tables, and decides ties (LEDGER §1)."""

    CAPACITY = "sched_wait.capacity"
    BUDGET = "sched_wait.budget"
    DEFERRED = "sched_wait.deferred"
    LIMIT = "sched_wait.limit"
    BACKPRESSURE = "sched_wait.backpressure"
    STALLED = "sched_wait.stalled"
    LOOKUP = "lookup"
    TIER_QUEUE = "tier_queue"
    ALLOC = "alloc"
    SUBMIT = "submit"
    STORAGE_READ = "storage_read"
    COPY = "copy"
    SYNC = "sync"
    COPY_WAIT = "copy_wait"
    RECOMPUTE_PREFILL = "recompute_prefill"
    NEW_PREFILL = "new_prefill"
    DECODE_STEP = "decode_step"
    UNATTRIBUTED = "unattributed"


ORDER: Final[Mapping[Component, int]] = {component: place for place, component in enumerate(Component)}
TIER_NAMES: Final[Mapping[Tier, str]] = {tier: tier.name.lower() for tier in Tier}


class Label(NamedTuple):
    """Where one nanosecond goes: a component, with its tier and reason where it has them."""

    component: Component
    tier: str | None = None
    reason: str | None = None


class Part(msgspec.Struct, frozen=True, gc=False):
    """So many nanoseconds under one label."""

    component: Component
    tier: str | None
    reason: str | None
    ns: int


UNATTRIBUTED: Final = Label(Component.UNATTRIBUTED)


def parts_of(amounts: Mapping[Label, int]) -> tuple[Part, ...]:
    """Amounts as parts in the order of tables, those of nothing left out."""
    labels = sorted((label for label, ns in amounts.items() if ns), key=_place)
    return tuple(Part(label.component, label.tier, label.reason, amounts[label]) for label in labels)


def _place(label: Label) -> tuple[int, str, str]:
    """Where a label stands in tables."""
    return ORDER[label.component], label.tier or "", label.reason or ""
