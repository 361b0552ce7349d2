"""From a trace to requests of a size that this machine can do."""

from dataclasses import dataclass

from kvtrail_engine.errors import SettingsError
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.tokens import TokenSource
from kvtrail_engine.loadgen.trace import HASH_TOKENS, Trace
from kvtrail_engine.request import RequestSpec


@dataclass(frozen=True, slots=True)
class TraceScaling:
    """How a trace is made smaller or faster. Token counts are divided by `scale`, so that 512 becomes 512 / scale."""

    scale: int = 16
    time_factor: float = 1.0
    """The trace's times are divided by it; 10 replays an hour in six minutes."""
    max_output_tokens: int | None = None
    vocabulary: int = 1024
    seed: int = 0
    tenant: str = "trace"

    @property
    def hash_tokens(self) -> int:
        """Tokens that one hash id stands for after scaling: choose it equal to the engine's block."""
        return HASH_TOKENS // self.scale


def arrivals_of(trace: Trace, scaling: TraceScaling) -> list[Arrival]:
    """The trace as arrivals, from its first request on.

    Raises:
        SettingsError: `scale` does not divide 512, or the time factor is not positive.
    """
    if scaling.scale < 1 or HASH_TOKENS % scaling.scale:
        message = f"scale is {scaling.scale}; it must divide {HASH_TOKENS}, so that a hash id stays a whole block"
        raise SettingsError(message)
    if scaling.time_factor <= 0:
        message = f"time_factor is {scaling.time_factor}; it must be positive"
        raise SettingsError(message)
    source = TokenSource(scaling.seed, scaling.vocabulary, scaling.hash_tokens)
    first_ms = trace.requests[0].timestamp if trace.requests else 0
    arrivals = []
    for number, request in enumerate(trace.requests):
        output = max(1, request.output_length // scaling.scale)
        spec = RequestSpec(
            name=f"trace-{number}",
            prompt=source.prompt(request.hash_ids, max(1, request.input_length // scaling.scale)),
            output_tokens=output if scaling.max_output_tokens is None else min(output, scaling.max_output_tokens),
            tenant=scaling.tenant,
        )
        at_ns = int((request.timestamp - first_ms) * 1e6 / scaling.time_factor)
        arrivals.append(Arrival(at_ns, spec))
    return arrivals
