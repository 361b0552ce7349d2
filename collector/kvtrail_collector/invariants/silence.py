"""Who fell silent: a process whose heart beats while it does nothing, and one of which nothing is heard any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.identity import Stream

from kvtrail_collector.invariants.found import Found
from kvtrail_collector.invariants.signs_of_life import SignsOfLife
from kvtrail_collector.invariants.single_rows import Settings

HANGS: Final = frozenset({"ENGINE_STALL", "AGENT_DEAD"})
_NS_A_S: Final = 1_000_000_000


def silent(lives: Mapping[Stream, SignsOfLife], settings: Settings) -> dict[Stream, list[Found]]:
    """What is to be said of each stream as of its last rows; nothing of those that are well."""
    found: dict[Stream, list[Found]] = {}
    now_ns: dict[str, int] = {}
    for stream, life in lives.items():
        now_ns[stream.engine] = max(life.last_ns, now_ns.get(stream.engine, life.last_ns))
    for stream, life in lives.items():
        stalled_s = life.stall_s()
        if stalled_s is not None and stalled_s >= settings["ENGINE_STALL"]["silence_s"]:
            found.setdefault(stream, []).append(Found("ENGINE_STALL", None, "", 1, (life.act_seq,), life.act_ns, life.beat_ns))
        silence_ns = now_ns[stream.engine] - life.last_ns
        if _has_died(stream, life, lives) and silence_ns >= settings["AGENT_DEAD"]["silence_s"] * _NS_A_S:
            dead = Found("AGENT_DEAD", None, "", 1, (life.last_seq,), life.last_ns, now_ns[stream.engine])
            found.setdefault(stream, []).append(dead)
    return found


def _has_died(stream: Stream, life: SignsOfLife, lives: Mapping[Stream, SignsOfLife]) -> bool:
    """Whether a process that is silent said no farewell, and nobody took its place after it."""
    if not life.has_beaten or life.said_farewell:
        return False
    heirs = (other for key, other in lives.items() if (key.engine, key.rank) == (stream.engine, stream.rank))
    return not any(heir.first_ns > life.last_ns for heir in heirs)
