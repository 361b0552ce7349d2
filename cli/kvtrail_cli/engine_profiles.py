"""Engines and loads that `kvtrail engine run` can run: a trace of the operator's, or generated chats."""

from dataclasses import dataclass
from pathlib import Path

from kvtrail_engine.demo import demo_requests, demo_settings
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.from_trace import TraceScaling, arrivals_of
from kvtrail_engine.loadgen.trace import HASH_TOKENS, read_trace
from kvtrail_engine.settings import EngineSettings, FloorSettings, ModelSettings, StepSettings, TierSettings

_MS_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Profile:
    """An engine and the load that it gets."""

    settings: EngineSettings
    arrivals: list[Arrival]
    skipped_lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """Which part of which trace, how much smaller and how much faster."""

    path: Path
    scale: int
    speed: float
    limit: int | None
    skip_bad_lines: bool


def chat_profile(seed: int, data_dir: Path, duration_s: float, rate_per_s: float) -> Profile:
    """Generated chats on the demo's engine."""
    return Profile(demo_settings(seed, data_dir), demo_requests(seed, duration_s, rate_per_s))


def trace_profile(choice: TraceChoice, seed: int, data_dir: Path) -> Profile:
    """A trace on an engine whose block is one hash id of the trace, scaled.

    Raises:
        EngineError: the trace has a wrong line, or its scale does not divide 512.
    """
    trace = read_trace(choice.path, limit=choice.limit, skip_bad_lines=choice.skip_bad_lines)
    scaling = TraceScaling(scale=choice.scale, time_factor=choice.speed, max_output_tokens=8, seed=seed)
    arrivals = arrivals_of(trace, scaling)
    longest = max((len(arrival.spec.prompt) + arrival.spec.output_tokens for arrival in arrivals), default=1)
    return Profile(trace_settings(seed, data_dir, HASH_TOKENS // choice.scale, longest), arrivals, trace.skipped_lines)


def trace_settings(seed: int, data_dir: Path, block_tokens: int, longest_tokens: int) -> EngineSettings:
    """An engine that holds the longest request on its gpu, a little more on host, and the rest on nvme."""
    longest_blocks = -(-longest_tokens // block_tokens) + 1
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        block_tokens=block_tokens,
        model=ModelSettings(max_positions=longest_blocks * block_tokens),
        gpu=TierSettings(slots=max(512, 3 * longest_blocks)),
        host=TierSettings(
            slots=1024,
            workers=2,
            floor=FloorSettings(read_latency_ns=1 * _MS_NS, write_latency_ns=1 * _MS_NS, bytes_per_s=1 << 30),
        ),
        nvme=TierSettings(
            slots=16384,
            workers=8,
            floor=FloorSettings(read_latency_ns=5 * _MS_NS, write_latency_ns=2 * _MS_NS, bytes_per_s=200 << 20),
        ),
        step=StepSettings(budget_tokens=512, max_sequences=48, floor_prefill_token_ns=60_000, floor_decode_token_ns=100_000),
    )
