"""How others ask an engine to degrade: any thread but the engine's own, done when the call returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kvtrail_schema.degrade import Action
from kvtrail_schema.enums import Tier
from kvtrail_schema.errors import OrderInvalid
from kvtrail_schema.reasons import AdmissionReason

from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineError

T = TypeVar("T")
_PATIENCE_S: Final = 5.0


class EngineControls:
    """The engine's side of `DegradeControls`. Requests that have their place keep it: active decode is never touched."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def apply(self, action: Action) -> None:
        """Do without something; twice is once.

        Raises:
            OrderInvalid: this engine has no such tier, or has ended.
            TimeoutError: it did not come to it.
        """
        if action.tier is not None and not self._has(Tier[action.tier.upper()]):
            raise OrderInvalid(f"this engine has no tier {action.tier}")
        self._ask(lambda: self._change(action, is_on=True))

    def release(self, action: Action) -> None:
        """Return to normal. Raises as `apply`."""
        self._ask(lambda: self._change(action, is_on=False))

    def in_force(self) -> tuple[str, ...]:
        """The actions in force. Raises as `apply`."""
        degraded = self._engine.context.degraded
        return self._ask(lambda: degraded.actions)

    def _has(self, tier: Tier) -> bool:
        """Whether a tier is there."""
        pool = self._engine.context.pools.get(tier)
        return pool is not None and pool.slots > 0

    def _ask(self, question: Callable[[], T]) -> T:
        """Have the engine's thread do or answer something."""
        try:
            return self._engine.ask(question, _PATIENCE_S)
        except EngineError as error:
            raise OrderInvalid(str(error)) from error

    def _change(self, action: Action, *, is_on: bool) -> None:
        """Runs on the engine's thread."""
        context = self._engine.context
        degraded, before = context.degraded, context.degraded.limit_tokens
        (degraded.apply if is_on else degraded.release)(action)
        self._engine.lifecycle.prefetcher.degrade(is_on=degraded.fetches_nothing)
        if degraded.limit_tokens is None and before is not None:
            normal_tokens = context.settings.gpu.slots * context.settings.block_tokens
            context.emit.admission_limited(normal_tokens, AdmissionReason.CLEARED)
        elif degraded.limit_tokens is not None and degraded.limit_tokens != before:
            context.emit.admission_limited(degraded.limit_tokens, AdmissionReason.DEGRADED)
