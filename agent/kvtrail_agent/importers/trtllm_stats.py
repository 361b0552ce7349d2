"""Iteration statistics of TensorRT-LLM (`GET /metrics`, `LLM.get_stats`) as events of ours: steps, and counters.

A step begins where its iteration began and ends at the record's time. The counters have the names that the engine gives them,
below `trtllm.iteration`; those of one window, pool or life cycle below its name.
"""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kvtrail_schema.events import CounterSampled, StepFinished, StepStarted
from kvtrail_schema.identity import StepId

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Origin, Part
from kvtrail_agent.importers.fields import U32, U64, Fields, needed, number, object_of, seconds_ns
from kvtrail_agent.importers.hashes import shown

_MS_NS: Final = 1_000_000
_DEEPEST: Final = 5
_MOST_COUNTERS: Final = 2_000
_MOST_ITERATIONS: Final = 1 << 20
_FORMS: Final = ("%m-%d-%Y %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f", "%m-%d-%Y %H:%M:%S")


class Iteration(NamedTuple):
    """What requests are joined with: an iteration, and the bytes that went to the GPU and from it while it ran."""

    number: int
    onboard_bytes: int
    offload_bytes: int


class TrtllmStats:
    """Decodes iteration statistics in their order; used by one thread. `iterations` is what requests are joined with."""

    def __init__(self, number: int = 0, engine: str = "") -> None:
        self._origin = Origin(engine, number, series="iterations")
        self.iterations: deque[Iteration] = deque(maxlen=_MOST_ITERATIONS)
        self.tiers: list[object] = []
        """The names of the cache levels, once an iteration has told them."""

    def decode(self, value: object) -> Decoded:
        """One iteration."""
        decoded = Decoded()
        try:
            fields = object_of(value, "an iteration")
            step = StepId(needed(fields, "iter", U64))
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        decoded.seen["iteration"] += 1
        part = Part(self._origin)
        decoded.parts.append(part)
        end_ns = time_of(fields.get("timestamp"))
        t_ns = step if end_ns is None else end_ns
        if end_ns is None:
            decoded.remarks["iterations without a time that can be read: their number stands for it"] += 1
        self._step(part, fields, step, t_ns)
        for name, found in _numbers("trtllm.iteration", fields, 0):
            if len(part.items) >= _MOST_COUNTERS:
                decoded.remarks["numbers of an iteration beyond the first 2,000"] += 1
                break
            part.add(CounterSampled(t_ns=t_ns, text=name, value=found))
        self._remember(fields, step)
        return decoded

    def _step(self, part: Part, fields: Fields, step: StepId, t_ns: int) -> None:
        """The iteration as a step, where it tells how long it took and what it ran."""
        latency = number(fields.get("iterLatencyMS"))
        batch = fields.get("inflightBatchingStats")
        if latency is None or latency < 0 or not isinstance(batch, dict):
            return
        prefill, requests = number(batch.get("numCtxTokens")) or 0, number(batch.get("numGenRequests")) or 0
        decode = round(max(requests, 0) * max(number(batch.get("avgNumDecodedTokensPerIter")) or 1.0, 0))
        prefill = int(max(prefill, 0))
        if max(prefill, decode, prefill + decode) > U32:
            return
        part.add(StepStarted(t_ns=max(t_ns - round(min(latency, 1e9) * _MS_NS), 0), step=step))
        part.add(StepFinished(t_ns=t_ns, step=step, tokens=prefill + decode, prefill_tokens=prefill, decode_tokens=decode))

    def _remember(self, fields: Fields, step: StepId) -> None:
        """Keep what requests are joined with, and what the levels are called."""
        windows = fields.get("kvCacheIterationStats")
        told = [one for one in windows.values() if isinstance(one, dict)] if isinstance(windows, dict) else []
        onboard, offload = (
            sum(int(number(one.get(name)) or 0) for one in told) for name in ("iterOnboardBytes", "iterOffloadBytes")
        )
        self.iterations.append(Iteration(int(step), onboard, offload))
        tiers = fields.get("kvCacheLevelTiers")
        self.tiers = tiers if isinstance(tiers, list) else self.tiers


def time_of(told: object) -> int | None:
    """The time of a record: seconds since 1970, or a form that some version writes, taken as UTC; None where it is none."""
    if not isinstance(told, str) or number(told) is not None:
        return seconds_ns(number(told))
    for form in _FORMS:
        try:
            found = datetime.strptime(told, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        whole = int(found.replace(microsecond=0).timestamp())
        return whole * 1_000_000_000 + found.microsecond * 1_000 if whole >= 0 else None
    return None


def _numbers(path: str, value: object, depth: int) -> Iterator[tuple[str, float]]:
    """Every number in a record, by its path."""
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, one in value.items():
            yield from _numbers(f"{path}.{name if isinstance(name, str) else shown(name)}"[:200], one, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for index, one in enumerate(value):
            yield from _numbers(f"{path}.{index}", one, depth + 1)
    elif not isinstance(value, str) and (found := number(value)) is not None:
        yield path, found
