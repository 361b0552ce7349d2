"""Whether an action took effect, by events alone: the engine says that it applied it, and does no longer what it shall not.

Used by the thread `kvtrail-alerts` alone.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from kvtrail_schema.degrade import Action, ActionKind, DegradeOrder, Desired
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.alerts.batch import NONE, NS_S, Ints, Rows

CONFIRM_WITHIN_S: Final = 10
"""By then the engine has said that it applied an order."""
GRACE_S: Final = 2
"""What was decided before an action was applied may still be seen so long after it."""

_MOST_LONG: Final = 8_192
_QUEUED: Final = (Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED)


class Effect(StrEnum):
    """How far an action has come."""

    REQUESTED = "requested"
    APPLIED = "applied"
    STALLED = "stalled"
    """Not confirmed in time, or the engine does what it said that it would not."""


class Finding(NamedTuple):
    """A change in what is known of an action."""

    engine: str
    action: str
    effect: Effect | None
    """None: the engine says that it is cleared."""
    detail: str
    wall_ns: int


@dataclass(slots=True)
class _Watched:
    """One action that was ordered of one engine."""

    action: Action
    ordered_wall_ns: int
    effect: Effect = Effect.REQUESTED
    applied_wall_ns: int = 0


class Effects:
    """What is watched: as many as there are actions in force, and a bounded memory of long prompts."""

    def __init__(self) -> None:
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._long: OrderedDict[tuple[str, int, int], int] = OrderedDict()

    def ordered(self, order: DegradeOrder, now_wall_ns: int) -> None:
        """Watch an order, or stop watching what was released; one that is given anew is watched already."""
        key = (order.engine, str(order.action))
        if order.state is Desired.RELEASED:
            self._watched.pop(key, None)
        else:
            self._watched.setdefault(key, _Watched(order.action, now_wall_ns))

    def effect_of(self, engine: str, text: str) -> Effect:
        """How far an action has come."""
        watched = self._watched.get((engine, text))
        return Effect.REQUESTED if watched is None else watched.effect

    def stalled(self) -> dict[str, int]:
        """How many actions of each engine that is watched are stalled."""
        found: dict[str, int] = {}
        for (engine, _), watched in self._watched.items():
            found[engine] = found.get(engine, 0) + (watched.effect is Effect.STALLED)
        return found

    def look(self, now_wall_ns: int) -> list[Finding]:
        """Those whose time to be confirmed is over."""
        findings: list[Finding] = []
        for (engine, text), watched in self._watched.items():
            is_late = now_wall_ns - watched.ordered_wall_ns > CONFIRM_WITHIN_S * NS_S
            if watched.effect is Effect.REQUESTED and is_late:
                watched.effect = Effect.STALLED
                detail = f"FALLBACK_STALLED: no degrade_applied within {CONFIRM_WITHIN_S} s"
                findings.append(Finding(engine, text, Effect.STALLED, detail, now_wall_ns))
        return findings

    def observe(self, rows: Rows) -> list[Finding]:
        """What rows of one stream say of the actions of their engine; nothing to do where none is watched."""
        engine = rows.origin.engine
        own = {text: watched for (name, text), watched in self._watched.items() if name == engine}
        findings = [finding for finding in self._told(rows, own) if finding is not None] if own else []
        for text, watched in own.items():
            against = self._against(rows, watched)
            if watched.effect is Effect.APPLIED and against.size:
                after_ns = watched.applied_wall_ns + GRACE_S * NS_S
                late = against[rows.wall_ns[against] > after_ns]
                if late.size:
                    watched.effect = Effect.STALLED
                    kind = Kind(int(rows.kind[late[0]])).name.lower()
                    detail = f"FALLBACK_STALLED: {kind} at seq {int(rows.ints('seq')[late[0]])}, after it was applied"
                    findings.append(Finding(engine, text, Effect.STALLED, detail, int(rows.wall_ns[late[0]])))
        return findings

    def _told(self, rows: Rows, own: dict[str, _Watched]) -> list[Finding | None]:
        """What the engine itself says of its actions."""
        return [self._one(rows, place, own) for place in rows.of(Kind.DEGRADE_APPLIED, Kind.DEGRADE_CLEARED).tolist()]

    def _one(self, rows: Rows, place: int, own: dict[str, _Watched]) -> Finding | None:
        """One event about an action that is watched, where it changes anything. One that the engine ended is requested anew."""
        text, wall_ns = rows.text(place), int(rows.wall_ns[place])
        watched = own.get(text)
        if watched is None:
            return None
        if rows.kind[place] == Kind.DEGRADE_CLEARED:
            watched.effect, watched.ordered_wall_ns = Effect.REQUESTED, wall_ns
            return Finding(rows.origin.engine, text, None, "cleared by the engine while it was wanted", wall_ns)
        if watched.effect is Effect.APPLIED:
            return None
        watched.effect, watched.applied_wall_ns = Effect.APPLIED, wall_ns
        return Finding(rows.origin.engine, text, Effect.APPLIED, "", wall_ns)

    def _against(self, rows: Rows, watched: _Watched) -> Ints:
        """Rows that should not be, once an action is applied."""
        action = watched.action
        match action.kind:
            case ActionKind.STOP_PREFETCH:
                return rows.of(Kind.PREFETCH_ISSUED)
            case ActionKind.RECOMPUTE:
                loads = rows.of(Kind.SWAP_IN_QUEUED)
                return np.asarray(loads[rows.ints("prefetch")[loads] == NONE], dtype=np.int64)
            case ActionKind.GPU_ONLY:
                return rows.of(*_QUEUED)
            case ActionKind.DISABLE_TIER:
                ops, number = rows.of(*_QUEUED), Tier[(action.tier or "").upper()].value
                touches = (rows.ints("src")[ops] == number) | (rows.ints("dst")[ops] == number)
                return np.asarray(ops[touches], dtype=np.int64)
            case ActionKind.LIMIT_LONG_CONTEXT:
                return self._too_long(rows, action.tokens or 0, watched.applied_wall_ns)

    def _too_long(self, rows: Rows, limit: int, after_wall_ns: int) -> Ints:
        """Admissions of prompts over a limit that arrived while it was in force."""
        engine, rank, req = rows.origin.engine, rows.origin.rank, rows.ints("req")
        arrived = rows.of(Kind.REQUEST_ARRIVED)
        is_long = (rows.ints("tokens")[arrived] > limit) & (rows.wall_ns[arrived] > after_wall_ns)
        for place in arrived[is_long].tolist():
            self._long[engine, rank, int(req[place])] = int(rows.ints("tokens")[place])
        while len(self._long) > _MOST_LONG:
            self._long.popitem(last=False)
        admitted = rows.of(Kind.REQUEST_ADMITTED)
        over = [place for place in admitted.tolist() if self._long.get((engine, rank, int(req[place])), 0) > limit]
        return np.array(over, dtype=np.int64)
