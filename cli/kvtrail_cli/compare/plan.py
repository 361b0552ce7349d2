"""What is compared: the engine that all paths share, and the loads that each of them gets, request for request the same."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.request import RequestSpec, Tokens
from kvtrail_engine.settings import EngineSettings, FloorSettings, RemoteSettings, StepSettings, TierSettings

MS = 1_000_000
BLOCK_TOKENS = 32
SUFFIX_TOKENS = 16
OUTPUT_TOKENS = 4
VOCABULARY = 1024
LEAST_STRETCH = 4
MOST_ROUNDS = 4
PREFETCH_WINDOW = 64
HINT_LEAD_NS = 150 * MS
"""Of a sweep of prefetch: so long before it comes a request is announced."""
REMOTE_FLOOR = FloorSettings(read_latency_ns=30 * MS, write_latency_ns=4 * MS, bytes_per_s=20_000_000)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load: documents that many ask about, each question with an end of its own."""

    name: str
    prefix_tokens: int
    documents: int
    rate_per_s: float


SCENARIOS = (
    Scenario("short prefix, idle", 32, 40, 14.0),
    Scenario("long prefix, idle", 512, 5, 9.0),
    Scenario("long prefix, busy", 512, 5, 40.0),
    Scenario("many long prefixes, idle", 512, 10, 9.0),
)
"""Short against long, idle against busy, and more documents than host has room for."""

SWEEP_LOAD = Scenario("many long prefixes, busy, few places", 512, 10, 40.0)
"""What sweeps run: requests wait for a place, so that there is something to fetch ahead for."""


def compare_settings(seed: int, data_dir: Path) -> EngineSettings:
    """The engine of all paths. Its gpu keeps one idle document, its host six, its nvme all of them."""
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        block_tokens=BLOCK_TOKENS,
        gpu=TierSettings(slots=512),
        gpu_low_slots=496,
        host=TierSettings(
            slots=96, workers=2, floor=FloorSettings(read_latency_ns=6 * MS, write_latency_ns=2 * MS, bytes_per_s=200_000_000)
        ),
        nvme=TierSettings(
            slots=1024, workers=6, floor=FloorSettings(read_latency_ns=12 * MS, write_latency_ns=3 * MS, bytes_per_s=60_000_000)
        ),
        step=StepSettings(
            budget_tokens=256, max_sequences=24, floor_ns=1 * MS, floor_prefill_token_ns=100_000, floor_decode_token_ns=200_000
        ),
    )


def sweep_settings(path: EngineSettings, *, prefetches: bool) -> EngineSettings:
    """A path for sweeps: two places, and a host that keeps half of its room for what comes up again."""
    return replace(
        path,
        host_low_slots=path.host.slots // 2 if path.host_low_slots else 0,
        step=replace(path.step, max_sequences=2),
        prefetch=replace(path.prefetch, window=PREFETCH_WINDOW if prefetches else 0),
    )


def remote_settings(url: str, password_file: Path | None) -> RemoteSettings:
    """The remote of the `remote` path."""
    tier = TierSettings(slots=1024, workers=6, floor=REMOTE_FLOOR)
    return RemoteSettings(url, tier, password_file=password_file, timeout_ns=2_000_000_000)


def document(seed: int, scenario: int, number: int, tokens: int) -> Tokens:
    """The tokens of a document: a function of its numbers."""
    return np.random.default_rng((seed, scenario, number)).integers(0, VOCABULARY, tokens, dtype=np.int64)


def question(name: str, prefix: Tokens, draw: np.random.Generator) -> RequestSpec:
    """A request about a document, with an end that nobody else has; never so long that its end is stored."""
    suffix = draw.integers(0, VOCABULARY, SUFFIX_TOKENS, dtype=np.int64)
    return RequestSpec(name, np.concatenate([prefix, suffix]), OUTPUT_TOKENS, "compare", keep_logits=True)


class Load:
    """One scenario's requests, the same for every path that asks: those that fill the caches, and those that count.

    Documents come in turns, in an order that is drawn anew for each turn, so that a short run asks about all of them too.
    """

    def __init__(self, seed: int, number: int, requests: int) -> None:
        self.scenario = (*SCENARIOS, SWEEP_LOAD)[number]
        draw = np.random.default_rng((seed, number))
        documents = [document(seed, number, at, self.scenario.prefix_tokens) for at in range(self.scenario.documents)]
        self.warm_up = [question(f"{number}.warm.{at}", prefix, draw) for at, prefix in enumerate(documents)]
        turns = -(-requests // len(documents))
        chosen = [int(which) for _ in range(turns) for which in draw.permutation(len(documents))]
        self._specs = [question(f"{number}.{at}", documents[which], draw) for at, which in enumerate(chosen[:requests])]
        self._gaps_ns = [int(gap * 1e9) for gap in draw.exponential(1 / self.scenario.rate_per_s, requests)]

    def rounds(self) -> list[list[Arrival]]:
        """The requests in up to four stretches, each long enough to be a load, and with arrivals of its own."""
        count = min(max(len(self._specs) // LEAST_STRETCH, 1), MOST_ROUNDS)
        size = max(-(-len(self._specs) // count), 1)
        return [self._stretch(start, start + size) for start in range(0, len(self._specs), size)]

    def _stretch(self, start: int, stop: int) -> list[Arrival]:
        """Arrivals of a Poisson process; the time before the first one counts."""
        at_ns, arrivals = 0, []
        for spec, gap_ns in zip(self._specs[start:stop], self._gaps_ns[start:stop], strict=True):
            at_ns += gap_ns
            arrivals.append(Arrival(at_ns, spec))
        return arrivals
