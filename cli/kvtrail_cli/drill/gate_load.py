"""The engine and the load of a gate's runs: light, and much alike from run to run, so that a dozen seconds tell two runs apart.

Most of a step is its floor, slept away; documents come again and again with something new behind them, from every tier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.settings import EngineSettings, FloorSettings, RestorePolicy, StepSettings, TierSettings

EQUAL: Final = "equal"
RATE_PER_S: Final = 32.0
_MS: Final = 1_000_000
_NS_S: Final = 1_000_000_000
_DOCUMENTS: Final = 10
_FIRST_EVERY_NS: Final = 100 * _MS
"""Each document comes once, at leisure, before the load begins: so few cold prompts are not in the tail."""
_DOCUMENT_BLOCKS: Final = 6
_NEW_TOKENS: Final = 64
_OUTPUT_TOKENS: Final = 4


def gate_settings(seed: int, data_dir: Path, change: str = EQUAL) -> EngineSettings:
    """An engine on whose gpu and host some of the documents lie, and on whose nvme the others do; changed as named."""
    settings = EngineSettings(
        data_dir=data_dir,
        seed=seed,
        gpu=TierSettings(slots=56),
        host=TierSettings(slots=40, floor=FloorSettings(read_latency_ns=2 * _MS)),
        nvme=TierSettings(slots=4096, workers=4, floor=FloorSettings(read_latency_ns=10 * _MS, write_latency_ns=_MS)),
        host_low_slots=16,
        step=StepSettings(floor_ns=10 * _MS, floor_prefill_token_ns=100_000, floor_decode_token_ns=100_000),
        nvme_files=NvmeSettings(outlives_engine=False, direct=DirectIo.OFF),
        restore_policy=RestorePolicy.RESTORE,
    )
    return settings if change == EQUAL else REGRESSIONS[change](settings)


def gate_arrivals(seed: int, duration_s: float) -> list[Arrival]:
    """Each document once; then evenly spaced, but for a jitter, one that is drawn, with something new behind it."""
    random = np.random.default_rng((seed, 7))
    documents = random.integers(0, 1024, (_DOCUMENTS, _DOCUMENT_BLOCKS * 32), dtype=np.int64)
    start_ns = _DOCUMENTS * _FIRST_EVERY_NS
    first = [(number * _FIRST_EVERY_NS, number) for number in range(_DOCUMENTS)]
    later = [
        (start_ns + int((number + random.uniform(0.0, 0.5)) / RATE_PER_S * _NS_S), int(random.integers(_DOCUMENTS)))
        for number in range(int(duration_s * RATE_PER_S))
    ]
    made: list[Arrival] = []
    for number, (at_ns, document) in enumerate([*first, *later]):
        prompt = np.concatenate([documents[document], random.integers(0, 1024, _NEW_TOKENS, dtype=np.int64)])
        made.append(Arrival(at_ns, RequestSpec(f"gate-{number}", prompt, _OUTPUT_TOKENS)))
    return made


def _slow_prefill(settings: EngineSettings) -> EngineSettings:
    """Each prompt token takes three times as long."""
    step = settings.step
    return replace(settings, step=replace(step, floor_prefill_token_ns=3 * step.floor_prefill_token_ns))


def _slow_decode(settings: EngineSettings) -> EngineSettings:
    """Each step takes twice as long at least."""
    return replace(settings, step=replace(settings.step, floor_ns=2 * settings.step.floor_ns))


def _slow_nvme(settings: EngineSettings) -> EngineSettings:
    """Each read of nvme takes eight times as long."""
    floor = settings.nvme.floor
    return replace(settings, nvme=replace(settings.nvme, floor=replace(floor, read_latency_ns=8 * floor.read_latency_ns)))


def _cold(settings: EngineSettings) -> EngineSettings:
    """What is stored is never read: each prompt is computed whole, unless it still lies on the gpu."""
    return replace(settings, restore_policy=RestorePolicy.RECOMPUTE)


REGRESSIONS: Final[Mapping[str, Callable[[EngineSettings], EngineSettings]]] = {
    "slow-prefill": _slow_prefill,
    "slow-decode": _slow_decode,
    "slow-nvme": _slow_nvme,
    "cold": _cold,
}
"""What is made worse, by name."""
