"""The bounded queue and the workers behind it: order, bounds, and times that add up."""

import threading

import pytest
from kvtrail_engine.clock import SystemClock
from kvtrail_engine.errors import ChecksumError, RecordMissingError, StorageError, TransferError
from kvtrail_engine.tiers.pool import Block, Copy, CopyState
from kvtrail_engine.tiers.queue import TransferQueue
from kvtrail_engine.tiers.transfer import Row, Transfer, TransferOutcome
from kvtrail_engine.tiers.workers import Workers
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, OpId, Slot

SERVICE_NS = 20_000_000


def load(op: int) -> Transfer:
    """An op from nvme to gpu, queued now."""
    block = Block(BlockId(op), NamespaceId(1), None, 0, 32)
    source = Copy(block, Tier.NVME, Slot(op), CopyState.READY, 0)
    target = Copy(block, Tier.GPU, Slot(op), CopyState.LOADING, 0)
    return Transfer(OpId(op), Tier.NVME, Tier.GPU, (Row(block, source, target),), SystemClock.now_ns())


class SlowMover:
    """Takes its time over each op, or fails."""

    def __init__(self, error: TransferError | None = None) -> None:
        self._error = error

    def move(self, transfer: Transfer) -> None:
        """Sleep a service time."""
        if self._error is not None:
            raise self._error
        clock = SystemClock()
        clock.sleep_until_ns(transfer.started_ns + SERVICE_NS)
        transfer.parts.io_ns = clock.now_ns() - transfer.started_ns


class Heard:
    """Keeps what the workers report."""

    def __init__(self, expected: int) -> None:
        self.begun: list[OpId] = []
        self.done: list[Transfer] = []
        self._expected = expected
        self.all_done = threading.Event()

    def started(self, transfer: Transfer) -> None:
        """An op went into service."""
        self.begun.append(transfer.op)

    def ended(self, transfer: Transfer) -> None:
        """An op has ended."""
        self.done.append(transfer)
        if len(self.done) == self._expected:
            self.all_done.set()


def serve(transfers: list[Transfer], mover: SlowMover) -> Heard:
    """Let one worker serve these ops."""
    queue, heard = TransferQueue(len(transfers)), Heard(len(transfers))
    assert all(queue.offer_nowait(transfer) for transfer in transfers)
    workers = Workers("test", queue, [mover], heard, SystemClock())
    workers.start()
    assert heard.all_done.wait(10)
    workers.close()
    return heard


def test_full_queue_refuses_and_counts() -> None:
    """An op that does not fit changes nothing but the count of the refused."""
    queue = TransferQueue(2)
    taken = [queue.offer_nowait(load(op)) for op in range(3)]

    assert taken == [True, True, False]
    assert queue.statistics() == (2, 2, 0, 2, 1)
    assert not queue.has_room(1)


def test_depth_is_what_an_op_found() -> None:
    """Each op knows how many waited before it."""
    queue, ops = TransferQueue(8), [load(op) for op in range(3)]
    for op in ops:
        queue.offer_nowait(op)

    assert [op.depth for op in ops] == [0, 1, 2]


def test_closed_queue_serves_what_waits_and_then_ends() -> None:
    """Closing loses nothing that was taken in, and takes in nothing more."""
    queue = TransferQueue(4)
    queue.offer_nowait(load(1))
    queue.close()
    first = queue.take()

    assert first is not None
    assert OpId(1) == first.op
    assert queue.take() is None
    assert not queue.offer_nowait(load(2))


def test_waits_are_measured_in_order() -> None:
    """One worker serves in order, and the second op waited for as long as the first one was served."""
    heard = serve([load(1), load(2), load(3)], SlowMover())
    waits_ns = [transfer.started_ns - transfer.queued_ns for transfer in heard.done]

    assert heard.begun == [1, 2, 3]
    assert waits_ns[1] >= SERVICE_NS
    assert waits_ns[2] >= 2 * SERVICE_NS


def test_parts_add_up_to_the_end() -> None:
    """From its start to its end an op's time is its parts and nothing else."""
    done = serve([load(1)], SlowMover()).done[0]

    assert done.started_ns + done.parts.io_ns == done.ended_ns


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ChecksumError("x"), TransferOutcome.CHECKSUM),
        (RecordMissingError("x"), TransferOutcome.MISSING),
        (StorageError("x"), TransferOutcome.IO),
    ],
)
def test_a_failed_op_ends_with_its_reason(error: TransferError, outcome: TransferOutcome) -> None:
    """A worker outlives what it could not do, and says why."""
    heard = serve([load(1), load(2)], SlowMover(error))

    assert [outcome, outcome] == [transfer.outcome for transfer in heard.done]


def test_a_cancelled_op_is_not_moved() -> None:
    """What was called off while it waited is never begun."""
    transfer = load(1)
    transfer.stop.set()
    heard = serve([transfer], SlowMover(StorageError("must not be reached")))

    assert TransferOutcome.CANCELLED is heard.done[0].outcome
