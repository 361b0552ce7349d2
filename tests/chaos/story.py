"""The life of blocks in a small cache, as a seeded, endless, legal sequence of events."""

import random
from collections.abc import Iterator
from typing import Any, Final

from kvtrail_schema import events as e
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, OpId, RequestId, Slot
from kvtrail_schema.reasons import ErrorReason, EvictReason, SwapOutFailReason

GPU_SLOTS: Final = 24
HOST_SLOTS: Final = 48


class BlockStory:
    """Blocks are created, saved, evicted, loaded again and read. Knows nothing of recorders."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._gpu: dict[Slot, BlockId] = {}
        self._host: dict[Slot, BlockId] = {}
        self._numbers = iter(range(1, 1 << 62))

    def events(self) -> Iterator[e.Event]:
        """One event after another, without seq and time."""
        while True:
            yield from self._random.choice((self._create, self._save, self._load, self._read, self._complain))()

    def _number(self) -> int:
        """A number that was never used."""
        return next(self._numbers)

    def _room(self, places: dict[Slot, BlockId], tier: Tier, slots: int) -> Iterator[e.Event]:
        """Evict a block where there is no free slot."""
        if len(places) == slots:
            slot = self._random.choice(sorted(places))
            yield e.Evicted(seq=0, t_ns=0, block=places.pop(slot), tier=tier, slot=slot, reason=EvictReason.CAPACITY)

    def _free(self, places: dict[Slot, BlockId], slots: int) -> Slot:
        """The lowest slot without a block."""
        return Slot(next(number for number in range(slots) if number not in places))

    def _create(self) -> Iterator[e.Event]:
        """A new block on the GPU."""
        yield from self._room(self._gpu, Tier.GPU, GPU_SLOTS)
        slot, block = self._free(self._gpu, GPU_SLOTS), BlockId(self._number())
        self._gpu[slot] = block
        yield e.BlockCreated(seq=0, t_ns=0, block=block, tier=Tier.GPU, slot=slot, bytes=4096)

    def _save(self) -> Iterator[e.Event]:
        """A copy of a block to the host, which may fail."""
        if self._gpu:
            yield from self._room(self._host, Tier.HOST, HOST_SLOTS)
            block = self._random.choice(sorted(self._gpu.values()))
            slot, op = self._free(self._host, HOST_SLOTS), OpId(self._number())
            where: dict[str, Any] = {
                "seq": 0,
                "t_ns": 0,
                "op": op,
                "src": Tier.GPU,
                "dst": Tier.HOST,
                "block": block,
                "slot": slot,
            }
            yield e.SwapOutQueued(**where)
            yield e.SwapOutStarted(**where)
            if self._random.random() < 0.1:
                yield e.SwapOutFailed(
                    seq=0, t_ns=0, op=op, src=Tier.GPU, dst=Tier.HOST, block=block, reason=SwapOutFailReason.IO
                )
            else:
                self._host[slot] = block
                yield e.SwapOutWritten(**where, bytes=4096, queue_ns=7, copy_ns=11)

    def _load(self) -> Iterator[e.Event]:
        """A copy of a block back to the GPU."""
        if self._host:
            yield from self._room(self._gpu, Tier.GPU, GPU_SLOTS)
            block = self._random.choice(sorted(self._host.values()))
            slot, op = self._free(self._gpu, GPU_SLOTS), OpId(self._number())
            where: dict[str, Any] = {
                "seq": 0,
                "t_ns": 0,
                "op": op,
                "src": Tier.HOST,
                "dst": Tier.GPU,
                "block": block,
                "slot": slot,
            }
            yield e.SwapInQueued(**where)
            yield e.SwapInStarted(**where)
            self._gpu[slot] = block
            yield e.SwapInLoaded(**where, bytes=4096, queue_ns=5, copy_ns=9)

    def _read(self) -> Iterator[e.Event]:
        """A block is read."""
        if self._gpu:
            slot = self._random.choice(sorted(self._gpu))
            yield e.AttentionRead(seq=0, t_ns=0, req=RequestId(self._number()), block=self._gpu[slot], tier=Tier.GPU, slot=slot)

    def _complain(self) -> Iterator[e.Event]:
        """Sometimes, an error with a text."""
        if self._random.random() < 0.2:
            yield e.Error(seq=0, t_ns=0, reason=ErrorReason.IO, text="x" * self._random.randrange(1, 200))
