"""The demo's profile: a small machine's worth of chats, calm when nothing is wrong, with real restores all the time.

Made for two cores that the engine shares with a collector and a shipper: most of a step's time is its floor, slept away.
"""

from pathlib import Path

import numpy as np

from kvtrail_engine.drills.registry import make_drill
from kvtrail_engine.drills.timer import ScheduledDrill
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.chat import ChatSettings, chat_arrivals
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.settings import EngineSettings, EstimateSettings, FloorSettings, StepSettings, TierSettings

DURATION_S = 95.0
RATE_PER_S = 35.0
MS = 1_000_000


def demo_settings(seed: int, data_dir: Path) -> EngineSettings:
    """An engine whose gpu holds seconds, whose host holds some more, and whose nvme holds the whole demo."""
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        gpu=TierSettings(slots=1024),
        gpu_low_slots=832,
        host=TierSettings(
            slots=512,
            workers=2,
            floor=FloorSettings(read_latency_ns=6 * MS, write_latency_ns=2 * MS, bytes_per_s=200_000_000),
        ),
        nvme=TierSettings(
            slots=8192,
            workers=12,
            floor=FloorSettings(read_latency_ns=18 * MS, write_latency_ns=6 * MS, bytes_per_s=40_000_000),
        ),
        step=StepSettings(
            budget_tokens=256,
            max_sequences=48,
            floor_ns=1 * MS,
            floor_prefill_token_ns=90_000,
            floor_decode_token_ns=200_000,
        ),
        # Each demo begins cold, and its floors, not this machine's disk, say how fast nvme is.
        nvme_files=NvmeSettings(outlives_engine=False, direct=DirectIo.OFF),
        estimates=EstimateSettings(is_by_size=False),
        host_low_slots=64,
        guest_slots=320,
    )


def demo_requests(seed: int, duration_s: float = DURATION_S, rate_per_s: float = RATE_PER_S) -> list[Arrival]:
    """The demo's chats."""
    return chat_arrivals(
        ChatSettings(
            seed=seed,
            duration_s=duration_s,
            rate_per_s=rate_per_s,
            first_tokens=(48, 128),
            turn_tokens=(16, 64),
            max_turns=10,
            new_share=0.08,
            think_s=(0.5, 2.5, 6.0),
        )
    )


def demo_drill(name: str, seed: int, duration_s: float = DURATION_S) -> ScheduledDrill | None:
    """The fault of this name, from a random moment on, for a random while; None for `none`."""
    drill = make_drill(name, seed)
    if drill is None:
        return None
    random = np.random.default_rng((seed, 3))
    start_s = random.uniform(0.45, 0.60) * duration_s
    length_s = random.uniform(0.20, 0.26) * duration_s
    return ScheduledDrill(drill, int(start_s * 1e9), int((start_s + length_s) * 1e9))
