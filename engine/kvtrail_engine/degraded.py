"""What the engine does without for now, because it was asked to: read by those who look things up, write, fetch and admit."""

from __future__ import annotations

from kvtrail_schema.degrade import Action, ActionKind
from kvtrail_schema.enums import Tier


class Degraded:
    """Only the engine's thread reads or changes it. What holds follows from the actions in force, whatever their order."""

    def __init__(self) -> None:
        self._actions: dict[str, Action] = {}
        self.closed: frozenset[Tier] = frozenset()
        """Tiers that are neither read nor written."""
        self.recomputes = False
        """Whether stored blocks are computed again and not loaded."""
        self.fetches_nothing = False
        """Whether nothing is fetched ahead: nor what would not be read."""
        self.limit_tokens: int | None = None
        """Prompts of more tokens are refused; None: only those that never fit."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in force."""
        return tuple(self._actions)

    def apply(self, action: Action) -> None:
        """Do without one more thing."""
        self._actions[str(action)] = action
        self._settle()

    def release(self, action: Action) -> None:
        """Return to it; nothing happens where it was not given up."""
        self._actions.pop(str(action), None)
        self._settle()

    def _settle(self) -> None:
        """What follows from the actions."""
        kinds = {action.kind for action in self._actions.values()}
        below = frozenset(tier for tier in Tier if tier is not Tier.GPU)
        named = frozenset(Tier[action.tier.upper()] for action in self._actions.values() if action.tier is not None)
        self.closed = below if ActionKind.GPU_ONLY in kinds else named
        self.recomputes = bool(kinds & {ActionKind.RECOMPUTE, ActionKind.GPU_ONLY})
        self.fetches_nothing = bool(kinds & {ActionKind.STOP_PREFETCH, ActionKind.RECOMPUTE, ActionKind.GPU_ONLY})
        limits = [action.tokens for action in self._actions.values() if action.tokens is not None]
        self.limit_tokens = min(limits, default=None)
