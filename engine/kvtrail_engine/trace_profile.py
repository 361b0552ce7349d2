"""Sizes that replay a public conversation trace on a laptop so that both slower tiers have real work.

Lengths are divided by 16: a 512-token hash block is one engine block of 32 tokens. The gpu holds a few prompts, the host some
tens, nvme the rest.
"""

from pathlib import Path

from kvtrail_engine.loadgen.from_trace import TraceScaling
from kvtrail_engine.settings import EngineSettings, FloorSettings, RestorePolicy, StepSettings, TierSettings

TRACE_SCALE = 16
MS = 1_000_000


def trace_settings(seed: int, data_dir: Path) -> EngineSettings:
    """An engine for a scaled conversation trace. Loads whatever is stored, so that the trace decides what is restored."""
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        gpu=TierSettings(slots=640),
        host=TierSettings(
            slots=3072,
            workers=2,
            floor=FloorSettings(read_latency_ns=1 * MS, write_latency_ns=1 * MS, bytes_per_s=400_000_000),
        ),
        nvme=TierSettings(
            slots=32_768,
            workers=4,
            floor=FloorSettings(read_latency_ns=2 * MS, write_latency_ns=1 * MS, bytes_per_s=100_000_000),
        ),
        step=StepSettings(budget_tokens=512, max_sequences=32),
        restore_policy=RestorePolicy.RESTORE,
    )


def trace_scaling(seed: int, time_factor: float = 1.0) -> TraceScaling:
    """The scaling that goes with `trace_settings`; at most eight output tokens, so that prompts are what costs."""
    return TraceScaling(scale=TRACE_SCALE, time_factor=time_factor, max_output_tokens=8, seed=seed)
