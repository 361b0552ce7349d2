"""The drills by name, each with three strengths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.ballast import host_pressure, thrash
from kvtrail_engine.drills.base import Drill
from kvtrail_engine.drills.guest_bursts import nvme_queue, prefetch_flood, write_back_flood
from kvtrail_engine.drills.late_prefetch import LatePrefetch
from kvtrail_engine.drills.mix_shift import MixShift
from kvtrail_engine.drills.neighbours import long_prefill, tenant_flood
from kvtrail_engine.drills.noticed_late import NoticedLate
from kvtrail_engine.drills.remote_timeout import RemoteTimeout
from kvtrail_engine.drills.slow_lookup import SlowLookup
from kvtrail_engine.drills.slow_tier import SlowTier
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.loadgen.hints import Hints
from kvtrail_engine.redis_process import RedisProcess

NO_DRILL: Final = "none"
MS: Final = 1_000_000


class Strength(IntEnum):
    """How hard a drill strikes; the middle one is what it does where nobody says."""

    MILD = 0
    MEDIUM = 1
    HARD = 2


@dataclass(frozen=True, slots=True)
class Means:
    """What some drills need beside the engine: the server behind its remote, the hints of its load."""

    server: RedisProcess | None = None
    hints: Hints | None = None


def _remote_timeout(pause_s: float, means: Means) -> Drill:
    """Needs a server of our own."""
    if means.server is None:
        message = "remote-timeout needs an engine with a remote whose server was started for it"
        raise SettingsError(message)
    return RemoteTimeout(means.server, pause_s)


def _late_prefetch(lead_ns: float, means: Means) -> Drill:
    """Needs a load that gives hints."""
    if means.hints is None:
        message = "late-prefetch needs a load that gives hints"
        raise SettingsError(message)
    return LatePrefetch(means.hints, int(lead_ns))


@dataclass(frozen=True, slots=True)
class Known:
    """One drill: its strengths in its own unit, and how it is made of a value, a seed and its means."""

    values: tuple[float, float, float]
    make: Callable[[float, int, Means], Drill]


DRILLS: Final[Mapping[str, Known]] = MappingProxyType(
    {
        "nvme-slow": Known((120 * MS, 250 * MS, 400 * MS), lambda v, _s, _m: SlowTier("nvme-slow", Tier.NVME, int(v))),
        "nvme-queue": Known((120, 180, 260), lambda v, s, _m: nvme_queue(s, int(v))),
        "long-prefill": Known((3072, 4096, 6144), lambda v, s, _m: long_prefill(s, int(v))),
        "prefetch-flood": Known((120, 180, 260), lambda v, s, _m: prefetch_flood(s, int(v))),
        "write-back-flood": Known((200, 270, 340), lambda v, s, _m: write_back_flood(s, int(v))),
        "host-pressure": Known((0.8, 0.85, 0.9), lambda v, _s, _m: host_pressure(v)),
        "remote-timeout": Known((0.4, 0.6, 0.8), lambda v, _s, m: _remote_timeout(v, m)),
        "copy-contention": Known(
            (40 * MS, 80 * MS, 120 * MS), lambda v, _s, _m: SlowTier("copy-contention", Tier.HOST, int(v))
        ),
        "slow-lookup": Known((60 * MS, 90 * MS, 120 * MS), lambda v, s, _m: SlowLookup(s, int(v))),
        "tenant-flood": Known((120, 150, 180), lambda v, s, _m: tenant_flood(s, v)),
        "late-prefetch": Known((10 * MS, 5 * MS, 1 * MS), lambda v, _s, m: _late_prefetch(v, m)),
        "thrash": Known((0.85, 0.9, 0.95), lambda v, _s, _m: thrash(v)),
        "noticed-late": Known((100 * MS, 160 * MS, 250 * MS), lambda v, _s, _m: NoticedLate(int(v))),
        "mix-shift": Known((0.15, 0.18, 0.21), lambda v, _s, _m: MixShift(v)),
    }
)

DRILL_NAMES: Final[tuple[str, ...]] = (NO_DRILL, *DRILLS)


def make_drill(name: str, seed: int, strength: Strength = Strength.MEDIUM, means: Means | None = None) -> Drill | None:
    """The drill of this name; None for `none`.

    Raises:
        SettingsError: there is no such drill, or it needs what is not given.
    """
    if name == NO_DRILL:
        return None
    known = DRILLS.get(name)
    if known is None:
        message = f"there is no drill {name}; there are {', '.join(DRILL_NAMES)}"
        raise SettingsError(message)
    return known.make(known.values[strength], seed, means or Means())
