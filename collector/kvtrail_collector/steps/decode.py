"""Bytes to a batch, or the reason why they are none."""

from kvtrail_schema.batch import Limits, decode_batch, peek_header
from kvtrail_schema.errors import CodecError

from kvtrail_collector.errors import BatchInvalid
from kvtrail_collector.store import Incoming


def decode(frame: bytes, received_wall_ns: int, limits: Limits) -> Incoming:
    """Read a frame. Runs on a worker thread: milliseconds for a full batch. Never allocates more than `limits` allow.

    Raises:
        BatchInvalid: it cannot be read.
    """
    try:
        batch = decode_batch(frame, limits=limits)
    except CodecError as error:
        do = "mend the sender; the batch is in quarantine"
        raise BatchInvalid(f"{type(error).__name__}: {error}", where=_where(frame, limits), do=do) from error
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
