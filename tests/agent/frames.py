"""Frames for tests of transports."""

from kvtrail_schema import batch
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import BatchHeader, StreamState
from kvtrail_schema.clock import Clocks
from kvtrail_schema.events import StepStarted
from kvtrail_schema.identity import StepId

Frame = tuple[bytes, BatchHeader]


def frame_of(first_seq: int, count: int = 3) -> Frame:
    """A frame with so many events, or a heartbeat with none."""
    rows = [StepStarted(seq=first_seq + n, t_ns=n, step=StepId(n)) for n in range(count)]
    header = BatchHeader(
        version=batch.VERSION,
        engine="test-engine",
        epoch=7,
        rank=0,
        first_seq=first_seq if count else 0,
        last_seq=first_seq + count - 1 if count else 0,
        count=count,
        produced=first_seq + count - 1,
        clocks=Clocks(monotonic_ns=1, wall_ns=2, error_ns=0),
        state=StreamState.RUNNING,
    )
    return batch.encode_batch(header, table_of(rows)), header
