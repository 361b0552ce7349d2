"""The files of the nvme tier: a few large segments of fixed-size records, one slot a record, read and written in batches."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from kvtrail_schema.identity import BlockId, Slot

from kvtrail_engine.clock import Clock
from kvtrail_engine.errors import NoSpaceError, RecordMissingError, TransferError, map_os_errors
from kvtrail_engine.nvme_settings import FsyncPolicy, NvmeSettings
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.direct import choose_io
from kvtrail_engine.tiers.encryption import Cipher
from kvtrail_engine.tiers.envelope import (
    STORE_BYTES,
    Header,
    Keeping,
    Meant,
    Origin,
    Stamp,
    check_owner,
    check_sums,
    checksum,
    is_meant,
    read_header,
    write_frame,
)
from kvtrail_engine.tiers.frames import Frames
from kvtrail_engine.tiers.geometry import Geometry
from kvtrail_engine.tiers.recovery import Recovery, RecoveryStatistics, Scanner, discard_all
from kvtrail_engine.tiers.segment_file import create_segment, remove_segments, segment_path

Check = Callable[[], None]
FOR_EVER = Keeping()
MAX_RUN = 256
"""Records in one call to the system: three buffers each, of which it takes 1024."""


@dataclass(frozen=True, slots=True)
class Put:
    """A record to write; the payload is read where it lies."""

    slot: Slot
    block: Block
    payload: memoryview
    keeping: Keeping = FOR_EVER


@dataclass(frozen=True, slots=True)
class Get:
    """A record to read, the block that it must be, and where its payload goes."""

    slot: Slot
    block: Block
    into: memoryview


def go_on() -> None:
    """The check of a read that nobody calls off."""


class StoreStatistics(NamedTuple):
    """The files at one moment."""

    files: int
    slots: int
    record_bytes: int
    """What one record takes on disk, its payload included."""
    written_records: int
    read_records: int
    """Read and believed."""
    refused_records: int
    """Read and not believed, for whatever reason."""
    syncs: int
    """Calls that made records safe from a crash of the host."""
    recovery: RecoveryStatistics


class SegmentStore:
    """Reads and writes records; any number of threads, each slot with one of them at a time (the pool sees to that).

    Slots from `indexed` on are not taken in again at the next start: nobody's index knows them.
    Payload buffers begin at multiples of the alignment where direct I/O is on and payloads are a multiple of it.

    Raises:
        StorageError: the operating system refused.
    """

    def __init__(
        self,
        directory: Path,
        slots: int,
        payload_bytes: int,
        origin: Origin,
        settings: NvmeSettings,
        *,
        indexed: int | None = None,
        wall_ns: Callable[[], int],
        clock: Clock,
        cipher: Cipher | None = None,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._cipher = cipher
        self._wall_ns = wall_ns
        self.origin = origin
        self.slots = slots
        with map_os_errors():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.io = choose_io(directory, settings.direct)
        self.geometry = Geometry.of(payload_bytes, self.io.align_bytes, settings.segment_bytes)
        self.recovery = self._recover(slots if indexed is None else indexed, clock)
        self._store = os.urandom(STORE_BYTES)
        self._generations = count(max((record.generation for record in self.recovery.records), default=0) + 1)
        self._lock = threading.Lock()
        self._written = self._read = self._refused = self._syncs = 0  # guarded by _lock
        self._unsynced_bytes = 0  # guarded by _lock
        self._unsynced: set[int] = set()  # files; guarded by _lock
        self._files = [self._open(number) for number in range(self.geometry.segments(slots))]

    def frames(self, records: int) -> Frames:
        """What a thread needs to read and write so many records at once."""
        return Frames(self.geometry, min(records, MAX_RUN))

    def write(self, puts: Sequence[Put], frames: Frames) -> None:
        """Write records, neighbouring slots in one call. Blocks. Each is valid as a whole, or not at all.

        Raises:
            NoSpaceError: the disk, a quota or a limit is full; what was there before in these slots may be gone.
            StorageError: the operating system refused.
        """
        puts = sorted(puts, key=lambda put: put.slot)
        for run in self.geometry.runs([put.slot for put in puts], frames.records):
            self._write_run([puts[index] for index in run], frames)
        with self._lock:
            self._written += len(puts)
        self._sync({self._file(put.slot) for put in puts}, len(puts) * self.geometry.record_bytes)

    def read(self, gets: Sequence[Get], frames: Frames, check: Check = go_on) -> dict[BlockId, TransferError]:
        """Read records, neighbouring slots in one call; those that are not to be believed, and why. Blocks.

        Buffers of refused records hold anything; nobody may read them. `check` is called before each record, and ends
        the read by what it raises.

        Raises:
            StorageError: the operating system refused; nothing may be read.
        """
        gets = sorted(gets, key=lambda get: get.slot)
        faults: dict[BlockId, TransferError] = {}
        for run in self.geometry.runs([get.slot for get in gets], frames.records):
            check()
            faults |= self._read_run([gets[index] for index in run], frames, check)
        with self._lock:
            self._read += len(gets) - len(faults)
            self._refused += len(faults)
        return faults

    def read_one(self, get: Get, frames: Frames) -> None:
        """Read one record. Blocks.

        Raises:
            TransferError: it is not there, not to be believed, or the operating system refused.
        """
        for fault in self.read([get], frames).values():
            raise fault

    def erase(self, slots: Sequence[Slot]) -> None:
        """Overwrite records with zeros, payload and all, so that nothing is left of them. Blocks for a write each and a sync.

        Raises:
            StorageError: the operating system refused.
        """
        zeros = self.frames(1)  # fresh memory of the system, and never written
        with map_os_errors():
            for slot in slots:
                os.pwritev(self._file(slot), [*zeros.heads, *zeros.stages, *zeros.tails], self.geometry.offset_of(slot))
            for file in {self._file(slot) for slot in slots}:
                os.fdatasync(file)

    def free_bytes(self) -> int:
        """What the file system has left for this user."""
        with map_os_errors():
            state = os.statvfs(self._directory)
        return state.f_bavail * state.f_frsize

    def statistics(self) -> StoreStatistics:
        """The files, now. From any thread."""
        with self._lock:
            return StoreStatistics(
                files=len(self._files),
                slots=self.slots,
                record_bytes=self.geometry.record_bytes,
                written_records=self._written,
                read_records=self._read,
                refused_records=self._refused,
                syncs=self._syncs,
                recovery=self.recovery.statistics,
            )

    def wall_ns(self) -> int:
        """The wall clock that expiry goes by."""
        return self._wall_ns()

    def close(self) -> None:
        """Close the files; synchronise them, or remove them, as the settings say. Twice is once."""
        with map_os_errors():
            while self._files:
                file = self._files.pop()
                if self._settings.outlives_engine and self._settings.fsync is not FsyncPolicy.NEVER:
                    os.fdatasync(file)
                os.close(file)
        if self.slots and not self._settings.outlives_engine:
            remove_segments(self._directory)

    def _recover(self, indexed: int, clock: Clock) -> Recovery:
        """What there is at the start; a tier that is off leaves the files as they are."""
        if not self.slots:
            return Recovery((), (), RecoveryStatistics())
        if not self._settings.outlives_engine:
            return discard_all(self._directory)
        scanner = Scanner(
            self._directory,
            self.geometry,
            self.origin,
            slots=self.slots,
            indexed=indexed,
            wall_ns=self._wall_ns,
            clock=clock,
        )
        return scanner.scan()

    def _open(self, number: int) -> int:
        """The file of one segment, made if it is not there."""
        path = segment_path(self._directory, number)
        if not path.exists():
            create_segment(self._directory, number, self.geometry)
        with map_os_errors():
            return os.open(path, os.O_RDWR | os.O_CLOEXEC | self.io.flags)

    def _file(self, slot: Slot) -> int:
        """The file that a slot lies in."""
        return self._files[self.geometry.segment_of(slot)]

    def _write_run(self, puts: Sequence[Put], frames: Frames) -> None:
        """Records side by side, in one call."""
        buffers: list[memoryview] = []
        for at, put in enumerate(puts):
            payload = self._fill(put, at, frames)
            buffers += (frames.heads[at], payload, frames.tails[at])
        first, wanted = puts[0].slot, len(puts) * self.geometry.record_bytes
        with map_os_errors():
            written = os.pwritev(self._file(first), buffers, self.geometry.offset_of(first))
        if written != wanted:
            message = f"slots from {first} on: {written} of {wanted} bytes found room"
            raise NoSpaceError(message)

    def _fill(self, put: Put, at: int, frames: Frames) -> memoryview:
        """Header and trailer of one record; its payload as it is stored."""
        length = put.payload.nbytes
        header = Header(put.block, put.slot, next(self._generations), length, put.keeping, self.origin, self._store)
        stored, tag = put.payload, None
        if self._cipher is not None:
            sealed, tag = self._cipher.seal(header, put.payload)
            stored = _stage(frames.stages[at], sealed)
        elif length != self.geometry.stored_bytes:
            stored = _stage(frames.stages[at], put.payload)
        stamp = Stamp(checksum(stored)) if tag is None else Stamp(checksum(stored), tag)
        write_frame(header, stamp, frames.heads[at], frames.tails[at])
        return stored

    def _read_run(self, gets: Sequence[Get], frames: Frames, check: Check) -> dict[BlockId, TransferError]:
        """Records side by side, in one call; those that are refused."""
        is_staged = self._cipher is not None or self.geometry.payload_bytes != self.geometry.stored_bytes
        stored = [frames.stages[at] if is_staged else get.into for at, get in enumerate(gets)]
        buffers = [part for at, payload in enumerate(stored) for part in (frames.heads[at], payload, frames.tails[at])]
        first = gets[0].slot
        with map_os_errors():
            found = os.preadv(self._file(first), buffers, self.geometry.offset_of(first)) // self.geometry.record_bytes
        faults: dict[BlockId, TransferError] = {}
        for at, get in enumerate(gets):
            check()
            try:
                if at >= found:
                    raise RecordMissingError(f"no record of block {get.block.id:016x}: the file ends before slot {get.slot}")
                self._believe(get, stored[at], frames.heads[at], frames.tails[at])
            except TransferError as fault:
                faults[get.block.id] = fault
        return faults

    def _believe(self, get: Get, stored: memoryview, head: memoryview, tail: memoryview) -> None:
        """Raise unless the record is the one that is meant; put its payload where it belongs."""
        check_sums(head, stored, tail)
        length = get.into.nbytes
        meant, wall_ns = Meant(get.block, get.slot, length, self.origin), self._wall_ns()
        if not is_meant(head, meant, wall_ns):
            check_owner(read_header(head)[0], meant, wall_ns)
        if self._cipher is not None:
            header, stamp = read_header(head)
            get.into[:] = self._cipher.open(header, stored[:length], stamp.tag)
        elif stored is not get.into:
            get.into[:] = stored[:length]

    def _sync(self, files: set[int], size_bytes: int) -> None:
        """Make what was written safe, as often as the policy says."""
        due = self._due(files, size_bytes)
        with map_os_errors():
            for file in due:
                os.fdatasync(file)

    def _due(self, files: set[int], size_bytes: int) -> set[int]:
        """The files to synchronise now: these, none, or all that have something once enough has come together."""
        policy = self._settings.fsync
        with self._lock:
            if policy is FsyncPolicy.BATCH:
                self._unsynced |= files
                self._unsynced_bytes += size_bytes
                if self._unsynced_bytes < self._settings.sync_bytes:
                    return set()
                files, self._unsynced, self._unsynced_bytes = self._unsynced, set(), 0
            due = set() if policy is FsyncPolicy.NEVER else files
            self._syncs += len(due)
        return due


def _stage(stage: memoryview, payload: bytes | memoryview) -> memoryview:
    """Copy a payload to the staging area, with zeros behind it."""
    size = len(payload)
    stage[:size] = payload
    stage[size:] = bytes(len(stage) - size)
    return stage
