"""Who fell silent: a process whose heart beats while it does nothing, and one of which nothing is heard any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.identity import Stream

from kvtrail_collector.detectors.one_clock import HOSTS_NS, clocks_of
from kvtrail_collector.invariants.found import Found
from kvtrail_collector.invariants.signs_of_life import SignsOfLife
from kvtrail_collector.invariants.single_rows import Settings

HANGS: Final = frozenset({"ENGINE_STALL", "AGENT_DEAD"})
_NS_A_S: Final = 1_000_000_000


def silent(
    lives: Mapping[Stream, SignsOfLife], offset_ns: Mapping[Stream, int], settings: Settings
) -> dict[Stream, list[Found]]:
    """What is to be said of each stream as of its last rows; nothing of those that are well.

    `offset_ns` makes the clock of a stream the time of day, for those of which that is known.
    """
    found: dict[Stream, list[Found]] = {}
    for stream, life in lives.items():
        stalled_s = life.stall_s()
        if stalled_s is not None and stalled_s >= settings["ENGINE_STALL"]["silence_s"]:
            found.setdefault(stream, []).append(Found("ENGINE_STALL", None, "", 1, (life.act_seq,), life.act_ns, life.beat_ns))
    for stream, silence_ns in _silences(lives, offset_ns).items():
        if silence_ns >= settings["AGENT_DEAD"]["silence_s"] * _NS_A_S:
            life = lives[stream]
            dead = Found("AGENT_DEAD", None, "", 1, (life.last_seq,), life.last_ns, life.last_ns + silence_ns)
            found.setdefault(stream, []).append(dead)
    return found


def _silences(lives: Mapping[Stream, SignsOfLife], offset_ns: Mapping[Stream, int]) -> dict[Stream, int]:
    """How much longer others of its engine were heard than each stream that said no farewell, and that has no heir."""
    heard = {stream: life for stream, life in lives.items() if life.last_seq}
    clocks = clocks_of({stream: life.first_ns for stream, life in heard.items()}, offset_ns)
    now_ns: dict[int, int] = {}
    today_ns: dict[str, int] = {}
    for stream, life in heard.items():
        now_ns[clocks[stream]] = max(life.last_ns, now_ns.get(clocks[stream], life.last_ns))
        if stream in offset_ns:
            wall_ns = life.last_ns + offset_ns[stream]
            today_ns[stream.engine] = max(wall_ns, today_ns.get(stream.engine, wall_ns))
    silences: dict[Stream, int] = {}
    for stream, life in heard.items():
        if life.has_beaten and not life.said_farewell and not _has_heir(stream, heard, clocks, offset_ns):
            by_day = today_ns[stream.engine] - life.last_ns - offset_ns[stream] - HOSTS_NS if stream in offset_ns else 0
            silences[stream] = max(now_ns[clocks[stream]] - life.last_ns, by_day)
    return silences


def _has_heir(
    stream: Stream, lives: Mapping[Stream, SignsOfLife], clocks: Mapping[Stream, int], offset_ns: Mapping[Stream, int]
) -> bool:
    """Whether another took a stream's place after it; of clocks that cannot be compared, any other of its rank may have."""
    for other, heir in lives.items():
        if (other.engine, other.rank) == (stream.engine, stream.rank) and other != stream:
            is_one_clock = clocks[other] == clocks[stream]
            if not is_one_clock and (other not in offset_ns or stream not in offset_ns):
                return True
            moved_ns = 0 if is_one_clock else offset_ns[other] - offset_ns[stream]
            if heir.first_ns + moved_ns > lives[stream].last_ns:
                return True
    return False
