"""Mechanisms, whole and broken: what each fault changes in how ops, lookups, steps and loads go. No fault touches a ledger."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from kvtrail_collector.facts_rows import IntArray

from kvtrail_cli.drill.generated.load import NEIGHBOUR, SECOND_NS, Load, shifted, unique_prompts

MS: Final = 1_000_000


class Span(NamedTuple):
    """[start, end) in ns."""

    start_ns: int
    end_ns: int

    def has(self, t_ns: IntArray) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Which moments lie within."""
        return np.asarray((t_ns >= self.start_ns) & (t_ns < self.end_ns))

    def every(self, every_ns: int) -> IntArray:
        """Moments from its start on, so far apart."""
        return np.arange(self.start_ns, self.end_ns, max(every_ns, 1), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Flood:
    """Bursts of the neighbour's ops at nvme: `burst_ops` of one block each, `every_ns` apart."""

    kind: str
    burst_ops: int
    every_ns: int


@dataclass(frozen=True, slots=True)
class Mechanism:
    """How things go within the span of a fault; the defaults change nothing."""

    nvme_factor: float = 1.0
    host_factor: float = 1.0
    lookup_stall_ns: int = 0
    notice_every_ns: int = 0
    lead_ns: int | None = None
    pause_ns: int = 0
    host_to_nvme: float = 0.0
    lost_share: float = 0.0
    floods: tuple[Flood, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What holds throughout a population: where prefixes lie below host, and whether they are fetched ahead.

    `prefetched` is the share of nvme hits that are; `lead_ns` how long before their request comes. `nvme_factor` makes nvme
    slower throughout, `nvme_workers` fewer (0: as recorded), so that what lies there matters.
    """

    is_remote: bool = False
    prefetched: float = 0.0
    lead_ns: int = 1_200 * MS
    nvme_factor: float = 1.0
    nvme_workers: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """A load with its world, its mechanism within a span, and what the drill of it is called."""

    load: Load
    world: World
    mechanism: Mechanism
    span: Span | None
    names: tuple[str, ...] = field(default=())


Strike = Callable[[Scene, Span, float, np.random.Generator], Scene]


class Fault(NamedTuple):
    """One fault: its strengths from weak to strong, and what it does with one of them."""

    low: float
    high: float
    strike: Strike
    world: World = World()


def _changed(change: Callable[[Mechanism, float], Mechanism]) -> Strike:
    """A fault that is one number of the mechanism."""

    def strike(scene: Scene, span: Span, value: float, rng: np.random.Generator) -> Scene:
        del span, rng
        return replace(scene, mechanism=change(scene.mechanism, value))

    return strike


def _flooded(kind: str) -> Strike:
    """A flood of nvme by ops of a kind."""

    def strike(scene: Scene, span: Span, value: float, rng: np.random.Generator) -> Scene:
        del span
        flood = Flood(kind, int(value), int(rng.uniform(0.8, 1.6) * SECOND_NS))
        return replace(scene, mechanism=replace(scene.mechanism, floods=(*scene.mechanism.floods, flood)))

    return strike


def _long_prefill(scene: Scene, span: Span, value: float, rng: np.random.Generator) -> Scene:
    """Few long prompts."""
    every_ns = int(rng.uniform(1.5, 3.0) * SECOND_NS)
    return replace(scene, load=scene.load.with_more(unique_prompts(span.every(every_ns), int(value))))


def _tenant_flood(scene: Scene, span: Span, value: float, rng: np.random.Generator) -> Scene:
    """Many small prompts, at so many a second."""
    count = int(value * (span.end_ns - span.start_ns) / SECOND_NS)
    arrived = np.sort(rng.integers(span.start_ns, span.end_ns, count))
    return replace(scene, load=scene.load.with_more(unique_prompts(arrived, 64)))


def _mix_shift(scene: Scene, span: Span, value: float, rng: np.random.Generator) -> Scene:
    """More of the tenant whose prompts are computed, fewer requests; a neighbour goes on as before."""
    inside = np.flatnonzero(span.has(scene.load.arrived_ns) & (scene.load.tenant != NEIGHBOUR))
    return replace(scene, load=shifted(scene.load, inside, value, rng))


FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        "nvme-slow": Fault(1.4, 12.0, _changed(lambda m, v: replace(m, nvme_factor=v))),
        "nvme-queue": Fault(60, 600, _flooded("demand")),
        "prefetch-flood": Fault(60, 600, _flooded("prefetch")),
        "write-back-flood": Fault(120, 1200, _flooded("write")),
        "host-pressure": Fault(0.3, 1.0, _changed(lambda m, v: replace(m, host_to_nvme=v)), World(nvme_workers=2)),
        "remote-timeout": Fault(100 * MS, 900 * MS, _changed(lambda m, v: replace(m, pause_ns=int(v))), World(is_remote=True)),
        "copy-contention": Fault(4.0, 40.0, _changed(lambda m, v: replace(m, host_factor=v))),
        "slow-lookup": Fault(15 * MS, 90 * MS, _changed(lambda m, v: replace(m, lookup_stall_ns=int(v)))),
        "long-prefill": Fault(1024, 8192, _long_prefill),
        "tenant-flood": Fault(30, 140, _tenant_flood),
        "late-prefetch": Fault(
            20 * MS, 1 * MS, _changed(lambda m, v: replace(m, lead_ns=int(v))), World(prefetched=0.85, nvme_factor=4.0)
        ),
        "thrash": Fault(0.05, 0.6, _changed(lambda m, v: replace(m, lost_share=v))),
        "noticed-late": Fault(30 * MS, 400 * MS, _changed(lambda m, v: replace(m, notice_every_ns=int(v)))),
        "mix-shift": Fault(0.25, 0.95, _mix_shift),
    }
)
"""Each fault's strengths are drawn from its range, evenly in their logarithm."""


def world_of(names: tuple[str, ...]) -> World:
    """The world in which these faults can be met."""
    worlds = [FAULTS[name].world for name in names if name in FAULTS]
    return World(
        is_remote=any(world.is_remote for world in worlds),
        prefetched=max((world.prefetched for world in worlds), default=0.0),
        nvme_factor=max((world.nvme_factor for world in worlds), default=1.0),
        nvme_workers=max((world.nvme_workers for world in worlds), default=0),
    )
