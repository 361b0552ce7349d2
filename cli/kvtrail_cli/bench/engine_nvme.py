"""The nvme tier's store beside a plain loop of `preadv` and `pwritev`: same file, same offsets, same threads, same run."""

import mmap
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtrail_engine.clock import SystemClock
from kvtrail_engine.nvme_settings import NvmeSettings
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.envelope import Origin
from kvtrail_engine.tiers.segment_file import segment_path
from kvtrail_engine.tiers.segments import Get, Put, SegmentStore
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

from kvtrail_cli.bench.engine_rounds import gb_per_s, in_turns, seconds_of
from kvtrail_cli.bench.engine_shapes import Beside

ORIGIN: Final = Origin(fingerprint=1)
_NS: Final = NamespaceId(1)


@dataclass(frozen=True, slots=True)
class NvmeLoad:
    """So many blocks, in ops of so many, by so many threads at once."""

    blocks: int
    block_bytes: int
    op_blocks: int
    threads: int

    @property
    def total_bytes(self) -> int:
        """Payload of a whole round."""
        return self.blocks * self.block_bytes

    def ops_of(self, thread: int) -> list[range]:
        """The slots of each of a thread's ops, in an order that no read-ahead guesses."""
        ops = [range(at, at + self.op_blocks) for at in range(0, self.blocks, self.op_blocks)]
        random.Random(17).shuffle(ops)  # noqa: S311 - an order, no secret
        return ops[thread :: self.threads]


def block_of(slot: int) -> Block:
    """The block that lies in a slot."""
    return Block(BlockId(slot + 1), _NS, None, 0, 1)


def open_store(directory: Path, blocks: int, block_bytes: int, files: NvmeSettings) -> SegmentStore:
    """A store in a folder, as the engine opens it."""
    return SegmentStore(directory, blocks, block_bytes, ORIGIN, files, wall_ns=time.time_ns, clock=SystemClock())


class NvmeBench:
    """One store with one file; used as a context manager."""

    def __init__(self, directory: Path, load: NvmeLoad) -> None:
        self._load = load
        files = NvmeSettings(segment_bytes=1 << 40)
        self._store = open_store(directory, load.blocks, load.block_bytes, files)
        self._plain = os.open(segment_path(directory, 0), os.O_RDWR | os.O_CLOEXEC | self._store.io.flags)
        self._blocks = [block_of(slot) for slot in range(load.blocks)]  # the engine has them before it reads or writes
        size = load.op_blocks * load.block_bytes
        self._buffers = [memoryview(mmap.mmap(-1, size)) for _ in range(load.threads)]
        self._frames = [self._store.frames(load.op_blocks) for _ in range(load.threads)]
        for at, buffer in enumerate(self._buffers):
            buffer[:] = random.Random(at).randbytes(size)  # noqa: S311 - filler

    @property
    def direct_io(self) -> str:
        """Whether the page cache was in the way."""
        return self._store.io.note

    def measure(self, rounds: int, advance: Callable[[], None]) -> tuple[Beside, Beside]:
        """Reads and writes in GB a second of payload; all records are whole at the end."""
        self._run(self._write_ours)
        writes = in_turns(lambda: self._run(self._write_ours), lambda: self._run(self._write_plain), rounds, advance)
        self._run(self._write_ours)
        reads = in_turns(lambda: self._run(self._read_ours), lambda: self._run(self._read_plain), rounds, advance)
        return reads, writes

    def close(self) -> None:
        """Close the files."""
        os.close(self._plain)
        self._store.close()

    def _run(self, work: Callable[[int], None]) -> float:
        """One round on all threads."""
        os.sync()
        seconds = seconds_of([lambda thread=thread: work(thread) for thread in range(self._load.threads)])  # type: ignore[misc] # bound now
        return gb_per_s(self._load.total_bytes, seconds)

    def _payloads(self, thread: int) -> list[memoryview]:
        """A thread's memory, a block each."""
        size = self._load.block_bytes
        return [self._buffers[thread][at * size : (at + 1) * size] for at in range(self._load.op_blocks)]

    def _read_ours(self, thread: int) -> None:
        """Through the store."""
        payloads, frames = self._payloads(thread), self._frames[thread]
        for op in self._load.ops_of(thread):
            gets = [Get(Slot(slot), self._blocks[slot], into) for slot, into in zip(op, payloads, strict=True)]
            for fault in self._store.read(gets, frames).values():
                raise fault

    def _write_ours(self, thread: int) -> None:
        """Through the store."""
        payloads, frames = self._payloads(thread), self._frames[thread]
        for op in self._load.ops_of(thread):
            self._store.write([Put(Slot(s), self._blocks[s], payload) for s, payload in zip(op, payloads, strict=True)], frames)

    def _read_plain(self, thread: int) -> None:
        """As many bytes at the same place, in one call an op."""
        for op in self._load.ops_of(thread):
            os.preadv(self._plain, [self._buffers[thread]], self._store.geometry.offset_of(Slot(op.start)))

    def _write_plain(self, thread: int) -> None:
        """As many bytes at the same place, in one call an op."""
        for op in self._load.ops_of(thread):
            os.pwritev(self._plain, [self._buffers[thread]], self._store.geometry.offset_of(Slot(op.start)))
