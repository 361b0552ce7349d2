"""Copies between arenas on the CPU: done block by block, and stopped between two of them."""

import pytest
import torch
from kvtrail_engine.clock import SystemClock
from kvtrail_engine.errors import TransferCancelledError
from kvtrail_engine.runtime.copies import CopyStream


def test_copies_stop_between_two_blocks() -> None:
    """What was not begun when it was called off is not done, and does not wait in the stream for the next op."""
    stream = CopyStream(torch.device("cpu"), SystemClock())
    source, target = torch.ones(4, 8), torch.zeros(4, 8)
    left = iter([None, None])

    def check() -> None:
        if next(left, "stop") == "stop":
            raise TransferCancelledError

    stream.start([(target[at], source[at]) for at in range(4)])
    with pytest.raises(TransferCancelledError):
        stream.finish(check)
    stream.finish(lambda: None)

    assert [8.0, 8.0, 0.0, 0.0] == target.sum(1).tolist()
