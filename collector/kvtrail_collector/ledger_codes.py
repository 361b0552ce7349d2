"""Labels as numbers, so that columns can carry them: component, tier and reason in one code, and back."""

from functools import cache
from typing import Final

import numpy as np
from kvtrail_schema.enums import Reason, Tier

from kvtrail_collector.facts_rows import IntArray
from kvtrail_collector.ledger_layout import wait_label
from kvtrail_collector.ledger_parts import ORDER, TIER_NAMES, Component, Label

_COMPONENT: Final = 1 << 16
_TIER: Final = 1 << 12
CODES: Final = len(Component) * _COMPONENT
"""All codes are below this."""

_COMPONENTS: Final = tuple(Component)
_DECODE_DETAILS: Final = {"pure": 1, "with_prefill": 2}
_REASON_DETAILS: Final = {reason.name.lower(): reason.value for reason in Reason}
_COPY_DETAILS: Final = {
    f"{TIER_NAMES[src]}→{TIER_NAMES[dst]}": 1 + src * len(Tier) + dst for src in Tier for dst in Tier if src is not dst
} | {f"{TIER_NAMES[tier]}→{TIER_NAMES[tier]}": 1 + tier * len(Tier) + tier for tier in Tier}
_TIER_PLACES: Final = {name: tier.value + 1 for tier, name in TIER_NAMES.items()}


def code_of(label: Label) -> int:
    """The number of a label. Numbers are stored: those of components, tiers and reasons never change."""
    tier = 0 if label.tier is None else _TIER_PLACES[label.tier]
    detail = 0 if label.reason is None else _details(label.component)[label.reason]
    return ORDER[label.component] * _COMPONENT + tier * _TIER + detail


@cache
def label_of(code: int) -> Label:
    """The label of a number."""
    component = _COMPONENTS[code // _COMPONENT]
    tier, detail = code % _COMPONENT // _TIER, code % _TIER
    names = {number: name for name, number in _details(component).items()}
    return Label(component, TIER_NAMES[Tier(tier - 1)] if tier else None, names.get(detail))


def component_names() -> tuple[str, ...]:
    """The names of components, in the order of their numbers."""
    return tuple(component.value for component in _COMPONENTS)


def detail_names() -> dict[int, dict[int, str]]:
    """What the details of components say, by number, where they are no reasons of events."""
    told = (Component.COPY, Component.DECODE_STEP)
    return {ORDER[component]: {number: name for name, number in _details(component).items()} for component in told}


def _details(component: Component) -> dict[str, int]:
    """The numbers of what a component's reason may say."""
    if component is Component.COPY:
        return _COPY_DETAILS
    return _DECODE_DETAILS if component is Component.DECODE_STEP else _REASON_DETAILS


UNATTRIBUTED_CODE: Final = code_of(Label(Component.UNATTRIBUTED))
LOOKUP_CODE: Final = code_of(Label(Component.LOOKUP))
COPY_WAIT_CODE: Final = code_of(Label(Component.COPY_WAIT))
DEFERRED_CODE: Final = code_of(Label(Component.DEFERRED))
BUDGET_CODE: Final = code_of(Label(Component.BUDGET))
STALLED_CODE: Final = code_of(Label(Component.STALLED))
PURE_STEP_CODE: Final = code_of(Label(Component.DECODE_STEP, None, "pure"))
PREFILL_STEP_CODE: Final = code_of(Label(Component.DECODE_STEP, None, "with_prefill"))

_KNOWN_REASONS: Final = {reason.value: reason for reason in Reason}
_REASON_PLACES: Final = max(_KNOWN_REASONS) + 2


def _chunk_code(number: int) -> int:
    """The code of a chunk; a reason that this version does not know counts as new."""
    reason = _KNOWN_REASONS.get(number, Reason.NEW)
    if reason is Reason.NEW:
        return code_of(Label(Component.NEW_PREFILL))
    return code_of(Label(Component.RECOMPUTE_PREFILL, None, reason.name.lower()))


def _wait_code(number: int) -> int:
    """The code of a wait for a reason; an unknown one counts as none."""
    return code_of(wait_label(_KNOWN_REASONS.get(number)))


_COMPUTED: Final = np.array([_KNOWN_REASONS.get(number, Reason.NEW).value for number in range(_REASON_PLACES)], dtype=np.int64)
_CHUNKS: Final = np.array([_chunk_code(number) for number in range(_REASON_PLACES)], dtype=np.int64)
_WAITS: Final = np.array([_wait_code(number) for number in range(_REASON_PLACES)], dtype=np.int64)
_UNKNOWN: Final = _REASON_PLACES - 1


def _bounded(reasons: IntArray) -> IntArray:
    """Reasons with those that this version does not know, and absent ones, as one number that is no reason."""
    return np.where((reasons >= 0) & (reasons < _UNKNOWN), reasons, _UNKNOWN)


def computed_reasons(reasons: IntArray) -> IntArray:
    """Why tokens were computed; a reason that this version does not know counts as new."""
    return _COMPUTED[_bounded(reasons)]


def chunk_codes(reasons: IntArray) -> IntArray:
    """The codes of chunks computed for these reasons."""
    return _CHUNKS[_bounded(reasons)]


def wait_codes(reasons: IntArray) -> IntArray:
    """The codes of waits for these reasons."""
    return _WAITS[_bounded(reasons)]


def op_codes(src: IntArray, dst: IntArray) -> IntArray:
    """The codes of the six parts of ops and of their trailing wait, one row an op."""
    tier = (np.maximum(src, dst) + 1) * _TIER
    copy = ORDER[Component.COPY] * _COMPONENT + tier + 1 + src * len(Tier) + dst
    tiered = [ORDER[part] * _COMPONENT + tier for part in _TIERED]
    plain = [np.full(len(src), code, dtype=np.int64) for code in (ORDER[Component.SYNC] * _COMPONENT, COPY_WAIT_CODE)]
    return np.stack([*tiered, copy, *plain], axis=1)


_TIERED: Final = (Component.TIER_QUEUE, Component.ALLOC, Component.SUBMIT, Component.STORAGE_READ)


def cause_places(codes: IntArray) -> IntArray:
    """The component and tier of codes, without their reasons."""
    return codes - codes % _TIER
