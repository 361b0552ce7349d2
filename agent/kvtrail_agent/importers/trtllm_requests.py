"""Requests of TensorRT-LLM (`GET /perf_metrics`) as events of ours; and what iterations say of them, marked as an estimate.

Times are seconds on a steady clock. Lengths of prompts and outputs are not told: they stand as 0.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CounterSampled,
    Event,
    RequestAdmitted,
    RequestArrived,
    RequestFinished,
    RequestFirstToken,
    SwapInLoaded,
    SwapInStarted,
)
from kvtrail_schema.identity import OpId, RequestId, keyed_id

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Origin, Part
from kvtrail_agent.importers.fields import U64, Fields, number, object_of, seconds_ns, whole
from kvtrail_agent.importers.hashes import shown
from kvtrail_agent.importers.trtllm_stats import Iteration

_TIMES: Final = ("arrival_time", "first_scheduled_time", "first_token_time", "last_token_time")
_COUNTS: Final = ("num_total_allocated_blocks", "num_new_allocated_blocks", "num_reused_blocks", "num_missed_blocks")


class _Ran(NamedTuple):
    """Over which iterations a request ran."""

    req: RequestId
    name: str
    first: int
    last: int
    t_ns: int


class TrtllmRequests:
    """Decodes requests; used by one thread. They are joined with iterations by `joined`, each once."""

    def __init__(self, key: bytes, number: int = 0, engine: str = "") -> None:
        self._key = key
        self._origin = Origin(engine, number, series="requests")
        self._ran: list[_Ran] = []

    def decode(self, value: object) -> Decoded:
        """One request."""
        decoded = Decoded()
        try:
            fields = object_of(value, "a request")
            metrics = object_of(fields.get("perf_metrics"), "perf_metrics")
            part = self._request(fields, metrics)
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        decoded.seen["request"] += 1
        decoded.parts.append(part)
        return decoded

    def joined(self, iterations: Iterable[Iteration]) -> Decoded:
        """For each request the bytes that moved while it ran: of all requests together, so an upper bound of its own.

        The names of these counters begin with `estimate`: the engine joins no copy with a request.
        """
        decoded, part = Decoded(), Part(self._origin)
        ordered = sorted(iterations)
        numbers = [one.number for one in ordered]
        ended, self._ran = self._ran, []
        for ran in ended:
            during = ordered[bisect_left(numbers, ran.first) : bisect_right(numbers, ran.last)]
            if not during:
                continue
            for what, total in (
                ("onboard_bytes", sum(one.onboard_bytes for one in during)),
                ("offload_bytes", sum(one.offload_bytes for one in during)),
            ):
                part.add(CounterSampled(t_ns=ran.t_ns, text=f"estimate.trtllm.{what}_while.{ran.name}", value=float(total)))
            decoded.remarks["requests joined with iterations, as an estimate"] += 1
        decoded.parts.append(part)
        return decoded

    def _request(self, fields: Fields, metrics: Fields) -> Part:
        """The life of a request.

        Raises:
            ForeignInvalid: it has no id, or not the times of its arrival and end in their order.
        """
        req, name = self._id(fields.get("request_id"))
        timing = object_of(metrics.get("timing_metrics"), "timing_metrics")
        arrival, scheduled, first_token, last_token = (seconds_ns(timing.get(one)) for one in _TIMES)
        if arrival is None:
            raise ForeignInvalid("timing_metrics has no arrival_time in seconds")
        events: list[Event] = [RequestArrived(t_ns=arrival, req=req, tokens=0, text=name)]
        if scheduled is not None:
            events.append(RequestAdmitted(t_ns=scheduled, req=req))
        if first_token is not None:
            events.append(RequestFirstToken(t_ns=first_token, req=req))
        events += _transfer(timing, req)
        end = last_token or first_token or arrival
        events += _counters(metrics, name, end)
        if last_token is not None:
            events.append(RequestFinished(t_ns=last_token, req=req, tokens=0))
        part = Part(self._origin)
        for event in sorted(events, key=lambda one: one.t_ns):
            part.add(event)
        first, last = whole(metrics, "first_iter", U64), whole(metrics, "last_iter", U64)
        if first is not None and last is not None:
            self._ran.append(_Ran(req, name, first, last, end))
        return part

    def _id(self, told: object) -> tuple[RequestId, str]:
        """The id of a request, and the engine's own as a text."""
        if isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= U64:
            return RequestId(told), str(told)
        if isinstance(told, str) and told:
            return RequestId(keyed_id(self._key, b"request", told.encode(errors="replace"))), told[:200]
        raise ForeignInvalid(f"request_id is {shown(told)}")


def _transfer(timing: Fields, req: RequestId) -> list[Event]:
    """The KV that came from another worker, where there was any. Its span has the preparation of the copy in it."""
    start, end = seconds_ns(timing.get("kv_cache_transfer_start")), seconds_ns(timing.get("kv_cache_transfer_end"))
    size = whole(timing, "kv_cache_size", U64)
    if start is None or end is None or end < start or not size:
        return []
    op = OpId(req)
    return [
        SwapInStarted(t_ns=start, op=op, src=Tier.REMOTE, dst=Tier.GPU, bytes=size, req=req),
        SwapInLoaded(t_ns=end, op=op, src=Tier.REMOTE, dst=Tier.GPU, bytes=size, req=req, io_ns=end - start),
    ]


def _counters(metrics: Fields, name: str, t_ns: int) -> list[Event]:
    """What the engine counts for a request."""
    counts = metrics.get("kv_cache_metrics")
    told = {one: number(counts.get(one)) for one in _COUNTS} if isinstance(counts, dict) else {}
    return [
        CounterSampled(t_ns=t_ns, text=f"trtllm.request.{one}.{name}", value=value)
        for one, value in told.items()
        if value is not None
    ]
