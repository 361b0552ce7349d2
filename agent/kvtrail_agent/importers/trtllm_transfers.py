"""Transfer timings of TensorRT-LLM's disaggregated serving, from its CSV files, as ops of ours.

Three headers: the C++ transceiver's old one (`RequestID,Delay(ms),Duration(ms),Bandwidth(Gbps)`), its new one (five points in
time, then `Delay,Duration,Bandwidth(Gbps)` for each peer), and the Python one of NIXL, which alone has a time of day and its
queue by itself. Rows of the first two have no times: they are laid one behind the other: durations are right, moments are not.
"""

from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.events import SwapInLoaded, SwapInQueued, SwapOutQueued, SwapOutWritten
from kvtrail_schema.identity import OpId, RequestId, keyed_id

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad, Decoded, Origin, Part
from kvtrail_agent.importers.fields import U64, Fields, number, object_of
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import redacted, shown
from kvtrail_agent.importers.trtllm_stats import time_of

_MS_NS: Final = 1_000_000
_LONGEST_MS: Final = 1e9
_BITS: Final = 8
_POINTS: Final = frozenset({"RequestInfo", "Preparation", "Preprocess", "Transmissions", "Postprocess"})
_NIXL: Final = frozenset(
    {
        *("timestamp", "task_type", "unique_rid", "peer_rank", "transfer_size_bytes", "avg_segment_size_bytes"),
        *("transfer_entry_count", "prepare_args_latency_ms", "queue_latency_ms", "transfer_latency_ms", "task_latency_ms"),
        "throughput_mbs",
    }
)


class _Transfer(NamedTuple):
    """One transfer of one request to or from one peer."""

    req: RequestId
    is_send: bool
    queue_ns: int
    submit_ns: int
    io_ns: int
    size_bytes: int | None
    end_ns: int | None = None


class TrtllmTransfers:
    """Decodes rows of timings; used by one thread. `sequence` is the name of the file, which says who sends."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._cursors_ns: dict[str, int] = {}
        self._ops = 0

    def decode(self, value: object, sequence: str = "") -> Decoded:
        """One row."""
        decoded, part = Decoded(), Part(Origin(life=self._source.number))
        try:
            fields = object_of(value, "a row")
            transfers = self._nixl(fields) if "task_type" in fields else self._cpp(fields, is_send="send" in sequence.lower())
        except ForeignInvalid as error:
            decoded.bad.append(Bad("", str(error)))
            return decoded
        decoded.parts.append(part)
        decoded.seen["transfer"] += len(transfers)
        strange = {name: one for name, one in fields.items() if not _is_known(name)}
        decoded.unknown.update(f"column {name}" for name in strange)
        for transfer in transfers:
            self._add(part, transfer, redacted(self._source.key, strange), sequence)
        return decoded

    def finish(self) -> Decoded:
        """Nothing is held back."""
        return Decoded()

    def _cpp(self, fields: Fields, *, is_send: bool) -> list[_Transfer]:
        """A row of the C++ transceiver: one transfer for each peer."""
        req = self._request(fields.get("RequestID"))
        found = [
            _Transfer(req, is_send, _ns(fields, delay), 0, _ns(fields, duration), _bytes(fields, duration, bandwidth))
            for delay, duration, bandwidth in _groups(fields)
        ]
        if not found:
            raise ForeignInvalid("no Delay and Duration: one of the headers that are known begins with RequestID or timestamp")
        return found

    def _nixl(self, fields: Fields) -> list[_Transfer]:
        """A row of the Python transceiver; its time is taken as the end of the transfer."""
        size = number(fields.get("transfer_size_bytes"))
        return [
            _Transfer(
                self._request(fields.get("unique_rid")),
                "send" in str(fields.get("task_type")).lower(),
                _ns(fields, "queue_latency_ms"),
                _ns(fields, "prepare_args_latency_ms"),
                _ns(fields, "transfer_latency_ms"),
                int(size) if size is not None and 0 <= size <= U64 else None,
                time_of(fields.get("timestamp")),
            )
        ]

    def _request(self, told: object) -> RequestId:
        """The request of a row."""
        if isinstance(told, str) and told.isascii() and told.isdigit() and int(told) <= U64:
            return RequestId(int(told))
        if isinstance(told, str) and told:
            return RequestId(keyed_id(self._source.key, b"request", told.encode(errors="replace")))
        raise ForeignInvalid(f"the request is {shown(told)}")

    def _add(self, part: Part, transfer: _Transfer, extra: str | None, sequence: str) -> None:
        """Two rows: from its queue to its end."""
        span_ns = transfer.queue_ns + transfer.submit_ns + transfer.io_ns
        begin = self._cursors_ns.get(sequence, 0) if transfer.end_ns is None else max(transfer.end_ns - span_ns, 0)
        end = begin + span_ns
        if transfer.end_ns is None:
            self._cursors_ns[sequence] = end
        self._ops += 1
        op, req, size = OpId(self._ops), transfer.req, transfer.size_bytes
        queue, submit, io = transfer.queue_ns, transfer.submit_ns, transfer.io_ns
        if transfer.is_send:
            part.add(SwapOutQueued(t_ns=begin, op=op, src=Tier.GPU, dst=Tier.REMOTE, bytes=size, req=req), extra)
            part.add(
                SwapOutWritten(
                    t_ns=end,
                    op=op,
                    src=Tier.GPU,
                    dst=Tier.REMOTE,
                    bytes=size,
                    req=req,
                    queue_ns=queue,
                    submit_ns=submit,
                    io_ns=io,
                )
            )
        else:
            part.add(SwapInQueued(t_ns=begin, op=op, src=Tier.REMOTE, dst=Tier.GPU, bytes=size, req=req), extra)
            part.add(
                SwapInLoaded(
                    t_ns=end,
                    op=op,
                    src=Tier.REMOTE,
                    dst=Tier.GPU,
                    bytes=size,
                    req=req,
                    queue_ns=queue,
                    submit_ns=submit,
                    io_ns=io,
                )
            )


def _groups(fields: Fields) -> list[tuple[str, str, str]]:
    """The names of delay, duration and bandwidth of each peer that a row has."""
    found = []
    for unit in ("(ms)", ""):
        for peer in ["", *(f".{place}" for place in range(2, len(fields)))]:
            names = (f"Delay{unit}{peer}", f"Duration{unit}{peer}", f"Bandwidth(Gbps){peer}")
            if str(fields.get(names[0], "")) and str(fields.get(names[1], "")):
                found.append(names)
    return found


def _ns(fields: Fields, name: str) -> int:
    """Milliseconds of a column as nanoseconds.

    Raises:
        ForeignInvalid: they are none.
    """
    found = number(fields.get(name))
    if found is None or not 0 <= found <= _LONGEST_MS:
        raise ForeignInvalid(f"{name} is {shown(fields.get(name))} where milliseconds are due")
    return round(found * _MS_NS)


def _bytes(fields: Fields, duration: str, bandwidth: str) -> int | None:
    """What a transfer moved, by its bandwidth and duration; None where the row has no bandwidth."""
    rate, took = number(fields.get(bandwidth)), number(fields.get(duration))
    if rate is None or took is None or rate < 0:
        return None
    size = rate * 1e9 / _BITS * took / 1e3
    return round(size) if size <= U64 else None


def _is_known(name: str) -> bool:
    """Whether a column is one that some version writes."""
    plain = name.partition(".")[0].removesuffix("(ms)")
    return plain in {"RequestID", "Delay", "Duration", "Bandwidth(Gbps)"} or plain in _POINTS or name in _NIXL
