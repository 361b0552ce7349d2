"""What an engine can be asked to do without for a while, and the order that asks for it: the words between collector and agent.

Collector and agent meet on the wire alone, so both sides of the wire stand here.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import OrderInvalid

ORDER_TYPE: Final = "kvtrail.degrade"
"""What stands as `type` in the body of a webhook that carries an order."""

LARGEST_LIMIT_TOKENS: Final = 2**32 - 2
_TEXT: Final = re.compile(r"([a-z_]+)(?:\(([a-z0-9]+)\))?")


class ActionKind(StrEnum):
    """What can be done without."""

    STOP_PREFETCH = "stop_prefetch"
    """Fetch nothing ahead."""
    LIMIT_LONG_CONTEXT = "limit_long_context"
    """Refuse prompts of more than so many tokens."""
    RECOMPUTE = "recompute"
    """Load no stored block; compute it again."""
    DISABLE_TIER = "disable_tier"
    """Neither read from a tier nor write to it."""
    GPU_ONLY = "gpu_only"
    """Neither read from any tier below the gpu nor write to one."""


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do without: `tokens` belongs to `limit_long_context`, `tier` to `disable_tier`, and neither to others."""

    kind: ActionKind
    tokens: int | None = None
    tier: str | None = None

    def __post_init__(self) -> None:
        is_limit, is_tier = self.kind is ActionKind.LIMIT_LONG_CONTEXT, self.kind is ActionKind.DISABLE_TIER
        if is_limit != (self.tokens is not None) or is_tier != (self.tier is not None):
            message = f"{self.kind.value}: a limit needs tokens, a tier needs its name, and nothing else takes either"
            raise ValueError(message)
        if self.tokens is not None and not 1 <= self.tokens <= LARGEST_LIMIT_TOKENS:
            message = f"a limit of {self.tokens} tokens"
            raise ValueError(message)
        if self.tier is not None and self.tier not in _BELOW_GPU:
            message = f"tier {self.tier!r} cannot be disabled; there are {', '.join(sorted(_BELOW_GPU))}"
            raise ValueError(message)

    def __str__(self) -> str:
        inside = self.tokens if self.tokens is not None else self.tier
        return self.kind.value if inside is None else f"{self.kind.value}({inside})"


_BELOW_GPU: Final = frozenset(tier.name.lower() for tier in Tier if tier is not Tier.GPU)


def parse_action(text: str) -> Action:
    """The action that `str` of an action, or the text of a degrade event, names.

    Raises:
        OrderInvalid: it names none.
    """
    name, inside = found.groups() if (found := _TEXT.fullmatch(text)) else ("", None)
    try:
        kind = ActionKind(name)
        tokens = int(inside) if inside is not None and kind is ActionKind.LIMIT_LONG_CONTEXT else None
        return Action(kind, tokens, inside if tokens is None else None)
    except ValueError as error:
        known = ", ".join(kind.value for kind in ActionKind)
        message = f"{text!r} is no action: use one of {known}, as limit_long_context(4096) and disable_tier(nvme)"
        raise OrderInvalid(message) from error


class Desired(StrEnum):
    """Whether an engine is to do without something, or no longer."""

    APPLIED = "applied"
    RELEASED = "released"


class DegradeOrder(msgspec.Struct, frozen=True):
    """The state that an engine shall have: the whole of it for one action, never a step.

    `version` grows with every order to an engine, so that a late one is known. After `expires_wall_ns` the order counts for
    nothing, and an action that it applied ends by itself.
    """

    engine: str
    action: Action
    state: Desired
    version: int
    expires_wall_ns: int
    rule: str


class OrderBody(msgspec.Struct, frozen=True):
    """The body of a webhook with an order, in the form of Standard Webhooks: type, time, data."""

    type: str
    timestamp: str
    data: DegradeOrder


def read_order(body: bytes) -> DegradeOrder:
    """The order in the body of a webhook.

    Raises:
        OrderInvalid: there is none.
    """
    try:
        read = msgspec.json.decode(body, type=OrderBody)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"no order: {error}"
        raise OrderInvalid(message) from error
    if read.type != ORDER_TYPE:
        message = f"a webhook of type {read.type!r}, not {ORDER_TYPE!r}"
        raise OrderInvalid(message)
    return read.data


class DegradeControls(Protocol):
    """**Protocol:** what an engine offers to those who ask it to degrade. Called from any thread but the engine's own.

    Both return once it is so, and both may be called again for what is so already.
    """

    def apply(self, action: Action) -> None:
        """Do without something from now on.

        Raises:
            OrderInvalid: this engine cannot: it has no such tier.
            TimeoutError: it did not come to it.
        """
        ...

    def release(self, action: Action) -> None:
        """Return to normal. Raises as `apply`."""
        ...
