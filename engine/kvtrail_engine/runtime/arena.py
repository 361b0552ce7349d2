"""One tier's memory: a tensor of slots, one block each; pinned where the host feeds a CUDA device."""

import torch

from kvtrail_engine.settings import EngineSettings


class Arena:
    """`data[slot]` is one block: [layers, keys and values, tokens, kv_width], contiguous, fp32.

    Holds no state about who owns a slot: that is the pool's. A slot is written by one thread at a time.
    """

    def __init__(self, settings: EngineSettings, slots: int, device: torch.device, *, pinned: bool = False) -> None:
        model = settings.model
        shape = (slots, model.layers, 2, settings.block_tokens, model.kv_width)
        self.data = torch.zeros(shape, dtype=torch.float32, device=device, pin_memory=pinned)
        self.pinned = pinned
        self.block_bytes = settings.block_bytes

    def buffer(self, slot: int) -> memoryview:
        """The bytes of one slot of a CPU arena, shared, writable."""
        return self.data[slot].numpy().data.cast("B")

    def swap(self, first: int, second: int) -> None:
        """Exchange the data of two slots and nothing else: a defect on purpose, for proofs that defects show."""
        kept = self.data[first].clone()
        self.data[first].copy_(self.data[second])
        self.data[second].copy_(kept)
