"""One tier's memory: a tensor of slots, one block each; pinned where the host feeds a CUDA device."""

import math

import torch

from kvtrail_engine.runtime.pinning import zeros
from kvtrail_engine.settings import EngineSettings

ALIGN_BYTES = 4096
"""Where a CPU arena begins: direct I/O reads and writes whole blocks in place."""


class Arena:
    """`data[slot]` is one block: [layers, keys and values, tokens, kv_width], contiguous, fp32.

    Holds no state about who owns a slot: that is the pool's. A slot is written by one thread at a time.

    Raises:
        PinFailedError: it shall be pinned, and cannot be.
    """

    def __init__(self, settings: EngineSettings, slots: int, device: torch.device, *, pinned: bool = False) -> None:
        model = settings.model
        shape = (slots, model.layers, 2, settings.block_tokens, model.kv_width)
        self.data = _zeros(shape, device, pinned=pinned)
        self.pinned = pinned
        self.block_bytes = settings.block_bytes
        self._bytes: memoryview | None = None  # set once; two threads may, to the same

    def buffer(self, slot: int) -> memoryview:
        """The bytes of one slot of a CPU arena, shared, writable."""
        memory = self._bytes
        if memory is None:
            memory = self._bytes = self.data.view(-1).numpy().data.cast("B")
        return memory[slot * self.block_bytes : (slot + 1) * self.block_bytes]

    def swap(self, first: int, second: int) -> None:
        """Exchange the data of two slots and nothing else: a defect on purpose, for proofs that defects show."""
        kept = self.data[first].clone()
        self.data[first].copy_(self.data[second])
        self.data[second].copy_(kept)


def _zeros(shape: tuple[int, ...], device: torch.device, *, pinned: bool) -> torch.Tensor:
    """A contiguous tensor; on the CPU it begins at a page."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=torch.float32, device=device)
    count = math.prod(shape)
    if pinned:
        # Not a byte more than is needed: torch pins the next power of two, so that slack could double the pool.
        whole = zeros(count, pinned=True)
        if not whole.data_ptr() % ALIGN_BYTES:  # the driver gives whole pages
            return whole.view(shape)
    flat = zeros(count + ALIGN_BYTES // 4, pinned=pinned)
    skipped = -flat.data_ptr() % ALIGN_BYTES // 4
    return flat[skipped : skipped + count].view(shape)
