"""The requests of a made population: stretches of recorded ones, one after another, with the neighbours' in between."""

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from kvtrail_collector.facts_rows import IntArray

from kvtrail_cli.drill.generated.recorded import Recorded

_STRETCH: Final = (60, 240)
NEIGHBOUR: Final = 99
"""The number of the drill's tenant; those of the load are numbered from 0."""
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """Requests in the order of arrival. What no tier has of a prompt is computed."""

    arrived_ns: IntArray
    prompt_tokens: IntArray
    gpu_tokens: IntArray
    host_tokens: IntArray
    nvme_tokens: IntArray
    output_tokens: IntArray
    tenant: IntArray

    def __len__(self) -> int:
        """How many requests."""
        return len(self.arrived_ns)

    @property
    def computed_tokens(self) -> IntArray:
        """What no tier has of each prompt."""
        return np.asarray(np.maximum(self.prompt_tokens - self.gpu_tokens - self.host_tokens - self.nvme_tokens, 0))

    def sorted(self) -> "Load":
        """The same in the order of arrival."""
        order = np.argsort(self.arrived_ns, kind="stable")
        return Load(*(getattr(self, field.name)[order] for field in fields(self)))

    def with_more(self, more: "Load") -> "Load":
        """These and others."""
        both = (np.concatenate([getattr(self, field.name), getattr(more, field.name)]) for field in fields(self))
        return Load(*both).sorted()


def drawn_load(recorded: Recorded, requests: int, pace: float, rng: np.random.Generator) -> Load:
    """So many requests out of a recorded run, in stretches as they came, all gaps by `pace` shorter."""
    place = _stretches(len(recorded.requests.gap_ns), requests, rng)
    columns = {
        name: np.array(getattr(recorded.requests, name), dtype=np.int64)[place] for name in recorded.requests.__struct_fields__
    }
    gaps = np.maximum(columns.pop("gap_ns") / pace, 1).astype(np.int64)
    return Load(arrived_ns=10 * SECOND_NS + np.cumsum(gaps), **columns)


def _stretches(available: int, wanted: int, rng: np.random.Generator) -> IntArray:
    """Places of recorded requests: stretches of neighbours, one after another."""
    pieces: list[IntArray] = []
    have = 0
    while have < wanted:
        length = min(int(rng.integers(*_STRETCH)), available)
        start = int(rng.integers(0, available - length + 1))
        pieces.append(np.arange(start, start + length))
        have += length
    return np.concatenate(pieces)[:wanted]


def unique_prompts(arrived_ns: IntArray, tokens: int, tenant: int = NEIGHBOUR) -> Load:
    """Requests for prompts that nobody has, one output token each."""
    count = len(arrived_ns)
    none, one = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    return Load(arrived_ns, one * tokens, none, none, none, one, one * tenant)


def least_cached(load: Load) -> int:
    """The tenant of whose prompts the tiers have the least."""
    tenants: list[int] = np.unique(load.tenant).tolist()
    return min(tenants, key=lambda tenant: _cached_share(load, tenant))


def _cached_share(load: Load, tenant: int) -> float:
    """The share of a tenant's prompts that some tier has."""
    own = load.tenant == tenant
    return float(1 - load.computed_tokens[own].sum() / max(int(load.prompt_tokens[own].sum()), 1))


def shifted(load: Load, inside: IntArray, share: float, rng: np.random.Generator) -> Load:
    """Among some requests (by place) a larger share of the tenant that is cached least, and so many fewer of all of them that
    as much is computed as before.
    """
    own = np.flatnonzero(load.tenant == least_cached(load))
    chosen = inside[rng.random(len(inside)) < share]
    chosen = chosen[load.tenant[chosen] != load.tenant[own[0]]]
    drawn = rng.choice(own, len(chosen))
    columns = {field.name: getattr(load, field.name).copy() for field in fields(load)}
    for name in columns.keys() - {"arrived_ns"}:
        columns[name][chosen] = getattr(load, name)[drawn]
    made = Load(**columns)
    kept = load.computed_tokens[inside].sum() / max(int(made.computed_tokens[inside].sum()), 1)
    stays = np.ones(len(load), dtype=np.bool_)
    stays[inside] = rng.random(len(inside)) < kept
    return Load(*(getattr(made, field.name)[stays] for field in fields(made)))
