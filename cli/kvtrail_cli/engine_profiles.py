"""Engines and loads that `kvtrail engine run` can run: a trace of the operator's, or generated chats."""

from dataclasses import dataclass, replace
from pathlib import Path

from kvtrail_engine.demo import demo_requests, demo_settings
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.from_trace import arrivals_of
from kvtrail_engine.loadgen.trace import HASH_TOKENS, read_trace
from kvtrail_engine.settings import EngineSettings, RestorePolicy
from kvtrail_engine.trace_profile import trace_scaling, trace_settings


@dataclass(frozen=True, slots=True)
class Profile:
    """An engine and the load that it gets."""

    settings: EngineSettings
    arrivals: list[Arrival]
    skipped_lines: tuple[int, ...] = ()
    hint_lead_ns: int | None = None
    """So long before it comes each request is announced to the engine; None: it is not."""

    def fetching_ahead(self, window: int, lead_s: float) -> "Profile":
        """The same with prefetch on, where the window is not 0."""
        prefetch = replace(self.settings.prefetch, window=window)
        lead_ns = int(lead_s * 1e9) if window and lead_s else None
        return replace(self, settings=replace(self.settings, prefetch=prefetch), hint_lead_ns=lead_ns)


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """Which part of which trace, how much smaller and how much faster."""

    path: Path
    scale: int
    speed: float
    limit: int | None
    skip_bad_lines: bool
    restore: str = RestorePolicy.AUTO.value


def chat_profile(seed: int, data_dir: Path, duration_s: float, rate_per_s: float) -> Profile:
    """Generated chats on the demo's engine."""
    return Profile(demo_settings(seed, data_dir), demo_requests(seed, duration_s, rate_per_s))


def trace_profile(choice: TraceChoice, seed: int, data_dir: Path) -> Profile:
    """A trace on an engine whose block is one hash id of the trace, scaled.

    Raises:
        EngineError: the trace has a wrong line, or its scale does not divide 512.
    """
    trace = read_trace(choice.path, limit=choice.limit, skip_bad_lines=choice.skip_bad_lines)
    arrivals = arrivals_of(trace, replace(trace_scaling(seed, choice.speed), scale=choice.scale))
    longest = max((len(arrival.spec.prompt) + arrival.spec.output_tokens for arrival in arrivals), default=1)
    settings = _fitted(trace_settings(seed, data_dir), HASH_TOKENS // choice.scale, longest)
    return Profile(replace(settings, restore_policy=RestorePolicy(choice.restore)), arrivals, trace.skipped_lines)


def _fitted(settings: EngineSettings, block_tokens: int, longest_tokens: int) -> EngineSettings:
    """The engine with the trace's block, and room on the gpu and in the model for the longest request."""
    longest_blocks = -(-longest_tokens // block_tokens) + 1
    gpu = replace(settings.gpu, slots=max(settings.gpu.slots, 2 * longest_blocks))
    positions = max(settings.model.max_positions, longest_blocks * block_tokens)
    return replace(settings, block_tokens=block_tokens, gpu=gpu, model=replace(settings.model, max_positions=positions))
