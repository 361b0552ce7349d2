"""What it costs to keep records: one slot of a segment each, beside one file each."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.tiers.segments import Get, Put
from kvtrail_schema.identity import Slot

from kvtrail_cli.bench.engine_nvme import block_of, open_store
from kvtrail_cli.bench.engine_rounds import in_turns
from kvtrail_cli.bench.engine_shapes import Beside

RECORD_BYTES: Final = 16 * 1024
_FILES: Final = NvmeSettings(direct=DirectIo.OFF)


class SmallBench:
    """Records of 16 KiB through the page cache, so that what differs is the metadata. One record a call on both sides."""

    def __init__(self, directory: Path, records: int) -> None:
        self._folder = directory / "files"
        self._segments = directory / "segments"
        self._records = records
        self._payload = memoryview(bytearray(os.urandom(RECORD_BYTES)))
        self._into = memoryview(bytearray(RECORD_BYTES))
        self._folder.mkdir()
        self._store = open_store(self._segments, records, RECORD_BYTES, _FILES)
        self._frames = self._store.frames(1)

    def measure(self, rounds: int, advance: Callable[[], None]) -> tuple[Beside, Beside, Beside]:
        """Microseconds a record: to write anew, to read, and at a start."""
        writes = in_turns(self._write_slots, self._write_files, rounds, advance, best=min)
        reads = in_turns(self._read_slots, self._read_files, rounds, advance, best=min)
        starts = in_turns(self._start_slots, self._start_files, rounds, advance, best=min)
        return writes, reads, starts

    def close(self) -> None:
        """Close the segment."""
        self._store.close()

    def _us(self, began_s: float) -> float:
        """Microseconds a record since then."""
        return (time.perf_counter() - began_s) * 1e6 / self._records

    def _paths(self) -> list[str]:
        """The names of the files."""
        return [f"{self._folder}/{number:08d}.kv" for number in range(self._records)]

    def _write_slots(self) -> float:
        """Each record in its slot."""
        began_s = time.perf_counter()
        for slot in range(self._records):
            self._store.write([Put(Slot(slot), block_of(slot), self._payload)], self._frames)
        return self._us(began_s)

    def _write_files(self) -> float:
        """Each record in a new file that takes the place of the old one when it is whole."""
        began_s = time.perf_counter()
        for path in self._paths():
            file = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.write(file, self._payload)
            os.close(file)
            os.rename(path + ".tmp", path)  # noqa: PTH104 - the call itself is what is measured
        return self._us(began_s)

    def _read_slots(self) -> float:
        """Each record, believed."""
        began_s = time.perf_counter()
        for slot in range(self._records):
            self._store.read_one(Get(Slot(slot), block_of(slot), self._into), self._frames)
        return self._us(began_s)

    def _read_files(self) -> float:
        """Each file, opened, read, closed; nothing is checked."""
        began_s = time.perf_counter()
        for path in self._paths():
            _read_file(path, self._into)
        return self._us(began_s)

    def _start_slots(self) -> float:
        """A start: every record read and checked."""
        began_s = time.perf_counter()
        open_store(self._segments, self._records, RECORD_BYTES, _FILES).close()
        return self._us(began_s)

    def _start_files(self) -> float:
        """A start: every file listed, opened and read."""
        began_s = time.perf_counter()
        for entry in os.scandir(self._folder):
            _read_file(entry.path, self._into)
        return self._us(began_s)


def _read_file(path: str, into: memoryview) -> None:
    """One file into memory."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.preadv(file, [into], 0)
    os.close(file)
