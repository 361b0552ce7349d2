"""Bytes to a batch, or the reason why they are none."""

from typing import Final

from kvtrail_schema.batch import BatchHeader, Limits, decode_batch, peek_header
from kvtrail_schema.errors import CodecError
from kvtrail_schema.identity import LARGEST_ID

from kvtrail_collector.errors import BatchInvalid
from kvtrail_collector.store import Incoming

_LARGEST_RANK: Final = 2**16 - 2
_CLOCK_BOUND: Final = 2**63


def decode(frame: bytes, received_wall_ns: int, limits: Limits) -> Incoming:
    """Read a frame. Runs on a worker thread: milliseconds for a full batch. Never allocates more than `limits` allow.

    Raises:
        BatchInvalid: it cannot be read, or says what no column can hold.
    """
    try:
        batch = decode_batch(frame, limits=limits)
    except CodecError as error:
        do = "mend the sender; the batch is in quarantine"
        raise BatchInvalid(f"{type(error).__name__}: {error}", where=_where(frame, limits), do=do) from error
    problem = _out_of_range(batch.header)
    if problem:
        raise BatchInvalid(problem, where=f"batch of {batch.header.engine}", do="mend the sender; the batch is in quarantine")
    return Incoming(batch, received_wall_ns)


def engine_of(frame: bytes, limits: Limits) -> str | None:
    """The engine that a broken frame names, if that much of it can be trusted."""
    try:
        return peek_header(frame, limits=limits).engine
    except CodecError:
        return None


def _where(frame: bytes, limits: Limits) -> str:
    """Whose frame it is, for people."""
    engine = engine_of(frame, limits)
    return f"batch of {engine}" if engine else f"batch of {len(frame)} bytes"


def _out_of_range(header: BatchHeader) -> str:
    """What in a header no column can hold, or an empty text."""
    if header.epoch > LARGEST_ID or header.rank > _LARGEST_RANK:
        return f"epoch {header.epoch} or rank {header.rank} is out of range"
    if max(header.produced, header.last_seq, *(drop.last_seq for drop in header.drops), 0) > LARGEST_ID:
        return "a seq is out of range"
    if max(map(abs, (header.clocks.monotonic_ns, header.clocks.wall_ns, header.clocks.error_ns))) >= _CLOCK_BOUND:
        return "a clock is out of range"
    return ""
