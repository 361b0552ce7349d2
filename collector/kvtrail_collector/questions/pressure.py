"""What holds an engine back right now: degrade actions that are asked for or in force, and layers that push back."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.scope import Chosen, newest_of
from kvtrail_collector.questions.words import reason_name, tier_name

_MOST: Final = 50
_DEGRADE: Final = f"{Kind.DEGRADE_REQUESTED.value}, {Kind.DEGRADE_APPLIED.value}, {Kind.DEGRADE_CLEARED.value}"
_PUSHES: Final = f"{Kind.BACKPRESSURE_ON.value}, {Kind.BACKPRESSURE_OFF.value}"
_ALIVE: Final = ", ".join(
    str(kind.value) for kind in (Kind.AGENT_STARTED, Kind.AGENT_HEARTBEAT, Kind.MANIFEST_DECLARED, Kind.CAPACITY_SAMPLED)
)
_NEWEST: Final = f"stream_id IN ({newest_of(f'kind IN ({_DEGRADE}, {_PUSHES}, {_ALIVE})')})"
# The newest word on each action, and on each layer, is how it stands: a word of the process that runs now, since nothing holds
# back one that has ended. The wish to release an action is told under a text of its own, and is no action.
_ACTIONS: Final = f"""
SELECT engine, rank, "text", arg_max(kind, t_ns) AS state, max(t_ns) AS at_ns, max(t_ns) + max(wall_ns - monotonic_ns)
FROM events JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE kind IN ({_DEGRADE}) AND "text" NOT LIKE 'release %' AND {_NEWEST} AND t_ns < $end_ns
GROUP BY engine, rank, "text" HAVING state <> {Kind.DEGRADE_CLEARED.value} ORDER BY at_ns DESC LIMIT {_MOST}
"""  # noqa: S608  # constants of ours
_HELD: Final = f"""
SELECT engine, rank, tier, reason, arg_max(kind, t_ns) AS state, max(t_ns) AS at_ns, max(t_ns) + max(wall_ns - monotonic_ns)
FROM events JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE kind IN ({_PUSHES}) AND tier IS NOT NULL AND {_NEWEST} AND t_ns < $end_ns
GROUP BY engine, rank, tier, reason HAVING state = {Kind.BACKPRESSURE_ON.value} ORDER BY at_ns DESC LIMIT {_MOST}
"""  # noqa: S608  # constants of ours


class Action(msgspec.Struct, frozen=True):
    """A degrade action that was not cleared: `applied` once the engine said so, `requested` until then."""

    engine: str
    rank: int
    action: str
    state: str
    since_ns: int
    since_wall_ns: int


class Held(msgspec.Struct, frozen=True):
    """A layer that pushes back."""

    engine: str
    rank: int
    tier: str
    reason: str | None
    since_ns: int
    since_wall_ns: int


class Pressure(msgspec.Struct, frozen=True):
    """All that holds back, at the end of the scope."""

    degrade: list[Action]
    backpressure: list[Held]
    device: str | None = None
    schema: int = 1


def pressure(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, device: str | None) -> Pressure:
    """What holds the engines of a scope back. Two passes over few kinds."""
    values = {"streams": chosen.streams, "end_ns": chosen.end_ns}
    actions = cursor.execute(_ACTIONS, values).fetchall()
    held = cursor.execute(_HELD, values).fetchall()
    states = {Kind.DEGRADE_APPLIED.value: "applied", Kind.DEGRADE_REQUESTED.value: "requested"}
    return Pressure(
        [Action(row[0], row[1], row[2], states[row[3]], row[4], row[5]) for row in actions],
        [Held(row[0], row[1], tier_name(row[2]), reason_name(row[3]), row[5], row[6]) for row in held],
        device,
    )
