"""How much of what happened the stored events show, and which kinds are absent altogether, with what that hides."""

from typing import Final

import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.loss_shapes import Loss

_SO_WHAT: Final[dict[Kind, str]] = {
    Kind.REQUEST_ARRIVED: "no latency can be measured",
    Kind.REQUEST_FIRST_TOKEN: "no time to first token can be measured",
    Kind.REQUEST_WAITING: "waiting is called `capacity`, whatever its reason",
    Kind.REQUEST_ADMITTED: "waiting and running cannot be told apart",
    Kind.STEP_STARTED: "a stalled scheduler looks like a busy one",
    Kind.STEP_FINISHED: "prefill and decode cannot be placed in time",
    Kind.PREFILL_CHUNK: "computing cannot be told from waiting, nor new tokens from recomputed ones",
    Kind.LOOKUP_FINISHED: "the time of lookups is unattributed",
    Kind.SWAP_IN_QUEUED: "the queue of a tier cannot be told from its reads",
    Kind.SWAP_IN_LOADED: "restores cannot be seen",
    Kind.COPY_WAITED: "waits for copies inside a step look like computing",
    Kind.MANIFEST_DECLARED: "device and settings are not known",
}


class Missing(msgspec.Struct, frozen=True):
    """Something that is not there, and what cannot be said without it."""

    kind: str
    so_what: str


def missing_kinds(present: frozenset[int]) -> tuple[Missing, ...]:
    """The kinds that explaining would use and that never came."""
    absent = [kind for kind in _SO_WHAT if kind.value not in present]
    return tuple(Missing(kind.name.lower(), _SO_WHAT[kind]) for kind in absent)


def coverage_of(loss: Loss) -> float:
    """The share of all events produced that are stored; 1 where nothing was produced.

    What retention let go of was stored, and lies before all that can be asked for: it is no part of it, nor is what was lost
    between.
    """
    stored = sum(stream.stored for stream in loss.streams)
    gone = sum(stream.expired + stream.lost_before_stored for stream in loss.streams)
    produced = sum(stream.produced - stream.in_flight for stream in loss.streams) - gone
    return min(stored / produced, 1.0) if produced else 1.0
