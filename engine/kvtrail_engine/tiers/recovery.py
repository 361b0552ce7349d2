"""What lies in the segment files at a start: every byte is read, what can be believed is taken in, the rest is removed."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kvtrail_schema.identity import BlockId, NamespaceId, Slot
from kvtrail_schema.reasons import OrphanReason

from kvtrail_engine.clock import Clock
from kvtrail_engine.errors import ChecksumError, RecordMissingError, map_os_errors
from kvtrail_engine.tiers.envelope import Header, Origin, check_whole, read_header
from kvtrail_engine.tiers.geometry import FILE_HEADER_BYTES, Geometry
from kvtrail_engine.tiers.segment_file import PATTERN, TMP_PATTERN, is_segment, number_of

CHUNK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Orphan:
    """Stored data that nobody owns: found, and removed."""

    reason: OrphanReason
    size_bytes: int
    block: BlockId | None = None
    """Of a torn record, where it still says so."""
    ns: NamespaceId | None = None
    records: int = 1
    """Records of one file that are removed for one reason, unless they are torn, are one orphan."""


class RecoveryStatistics(NamedTuple):
    """What a start found."""

    recovered: int = 0
    """Records that were taken in."""
    torn: int = 0
    """Records that are not as they were written."""
    foreign: int = 0
    """Records and files of another model, dtype, key, place or form."""
    unindexed: int = 0
    """Good records without a place: older ones of a block, ones beyond the tier's room."""
    tmp: int = 0
    """Files that were being made."""
    expired: int = 0
    """Good records whose time is over."""
    orphan_bytes: int = 0
    read_bytes: int = 0
    duration_ns: int = 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """The records to take in, the oldest first, and what was removed."""

    records: tuple[Header, ...]
    orphans: tuple[Orphan, ...]
    statistics: RecoveryStatistics


@dataclass(slots=True)
class _Notes:
    """What one scan has come upon."""

    kept: dict[BlockId, Header] = field(default_factory=dict)
    orphans: list[Orphan] = field(default_factory=list)
    useless: Counter[tuple[int, OrphanReason]] = field(default_factory=Counter)
    """Records that are whole and of no use, by file and reason."""
    erased: list[Slot] = field(default_factory=list)
    read_bytes: int = 0


class Scanner:
    """Used once, before an engine has threads. Blocks while it reads every byte, at the speed of the device."""

    def __init__(
        self,
        directory: Path,
        geometry: Geometry,
        origin: Origin,
        *,
        slots: int,
        indexed: int,
        wall_ns: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._directory = directory
        self._geometry = geometry
        self._slots = slots
        self._indexed = indexed
        self._origin = origin
        self._wall_ns = wall_ns
        self._clock = clock
        self._notes = _Notes()

    def scan(self) -> Recovery:
        """Read everything, remove what cannot be used, and say what there is.

        Afterwards every slot holds a record that is in the answer, or none.

        Raises:
            StorageError: the operating system refused.
        """
        began_ns = self._clock.now_ns()
        with map_os_errors():
            for path in sorted(self._directory.glob(TMP_PATTERN)):
                self._discard(path, OrphanReason.TMP)
            for path in sorted(self._directory.glob(PATTERN)):
                self._scan_file(path)
            self._erase()
        return self._sum_up(self._clock.now_ns() - began_ns)

    def _scan_file(self, path: Path) -> None:
        """One file, believed only if its own first bytes say that it is this segment."""
        number = number_of(path)
        if number is None or not is_segment(path, number, self._geometry):
            self._discard(path, OrphanReason.FOREIGN)
            return
        for slot, record in self._records(path, number):
            self._take(slot, record)
        if number >= self._geometry.segments(self._slots):
            path.unlink()

    def _records(self, path: Path, number: int) -> Iterator[tuple[Slot, memoryview]]:
        """Each slot's bytes, as many as the file has; the buffer is used again."""
        record_bytes, first = self._geometry.record_bytes, number * self._geometry.segment_slots
        buffer = memoryview(bytearray(max(CHUNK_BYTES // record_bytes, 1) * record_bytes))
        with path.open("rb", buffering=0) as stream:
            stream.seek(FILE_HEADER_BYTES)
            slot = first
            while size := stream.readinto(buffer):
                self._notes.read_bytes += size
                for start in range(0, size, record_bytes):
                    yield Slot(slot), buffer[start : min(start + record_bytes, size)]
                    slot += 1
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _take(self, slot: Slot, record: memoryview) -> None:
        """Judge one slot's bytes."""
        align, stored = self._geometry.align_bytes, self._geometry.stored_bytes
        head, payload, tail = record[:align], record[align : align + stored], record[align + stored :]
        if len(record) < self._geometry.record_bytes:
            self._tear(slot, _claimed(head) if len(head) == align else None)
            return
        try:
            header, _ = check_whole(head, payload, tail)
        except RecordMissingError:
            return
        except ChecksumError:
            self._tear(slot, _claimed(head))
            return
        if (header.origin, header.slot, header.length) != (self._origin, slot, self._geometry.payload_bytes):
            self._drop(slot, OrphanReason.FOREIGN)
        elif header.keeping.is_expired(self._wall_ns()):
            self._drop(slot, OrphanReason.EXPIRED)
        elif slot >= self._indexed:
            self._drop(slot, OrphanReason.UNINDEXED)
        else:
            self._keep(header)

    def _keep(self, header: Header) -> None:
        """Take a good record in; of two of one block the later one stays."""
        known = self._notes.kept.get(header.block.id)
        if known is not None:
            older = min(known, header, key=lambda record: record.generation)
            self._drop(older.slot, OrphanReason.UNINDEXED)
            header = known if older is header else header
        self._notes.kept[header.block.id] = header

    def _tear(self, slot: Slot, claimed: Header | None) -> None:
        """Note a torn record for removal, under the name that it claims."""
        size_bytes = self._geometry.record_bytes
        names = (None, None) if claimed is None else (claimed.block.id, claimed.block.ns)
        self._notes.orphans.append(Orphan(OrphanReason.TORN, size_bytes, *names))
        self._notes.erased.append(slot)

    def _drop(self, slot: Slot, reason: OrphanReason) -> None:
        """Note a record that is whole and of no use for removal."""
        self._notes.useless[self._geometry.segment_of(slot), reason] += 1
        self._notes.erased.append(slot)

    def _discard(self, path: Path, reason: OrphanReason) -> None:
        """Remove a whole file."""
        self._notes.orphans.append(Orphan(reason, path.stat().st_size))
        path.unlink()

    def _erase(self) -> None:
        """Empty the slots of what was noted for removal."""
        for slot in self._notes.erased:
            path = self._directory / f"segment-{self._geometry.segment_of(slot):05d}.kv"
            if path.exists():
                with path.open("r+b", buffering=0) as stream:
                    stream.seek(self._geometry.offset_of(slot))
                    stream.write(bytes(self._geometry.align_bytes))

    def _sum_up(self, duration_ns: int) -> Recovery:
        """The answer."""
        notes, size_bytes = self._notes, self._geometry.record_bytes
        notes.orphans += [Orphan(why, n * size_bytes, records=n) for (_, why), n in sorted(notes.useless.items())]
        count = _count(notes.orphans)
        statistics = RecoveryStatistics(
            recovered=len(notes.kept),
            torn=count[OrphanReason.TORN],
            foreign=count[OrphanReason.FOREIGN],
            unindexed=count[OrphanReason.UNINDEXED],
            tmp=count[OrphanReason.TMP],
            expired=count[OrphanReason.EXPIRED],
            orphan_bytes=sum(orphan.size_bytes for orphan in notes.orphans),
            read_bytes=notes.read_bytes,
            duration_ns=duration_ns,
        )
        records = tuple(sorted(notes.kept.values(), key=lambda record: record.generation))
        return Recovery(records, tuple(notes.orphans), statistics)


def _count(orphans: list[Orphan]) -> Counter[OrphanReason]:
    """Records (and whole files) by the reason of their removal."""
    count: Counter[OrphanReason] = Counter()
    for orphan in orphans:
        count[orphan.reason] += orphan.records
    return count


def _claimed(head: memoryview) -> Header | None:
    """What a torn record says that it is, where at least its header is whole."""
    try:
        return read_header(head)[0]
    except (ChecksumError, RecordMissingError):
        return None


def discard_all(directory: Path) -> Recovery:
    """Remove every segment without reading it: for a tier that does not outlive its engine."""
    orphans: list[Orphan] = []
    with map_os_errors():
        for pattern, reason in ((TMP_PATTERN, OrphanReason.TMP), (PATTERN, OrphanReason.UNINDEXED)):
            for path in sorted(directory.glob(pattern)):
                orphans.append(Orphan(reason, path.stat().st_size))
                path.unlink()
    count = _count(orphans)
    statistics = RecoveryStatistics(
        unindexed=count[OrphanReason.UNINDEXED],
        tmp=count[OrphanReason.TMP],
        orphan_bytes=sum(orphan.size_bytes for orphan in orphans),
    )
    return Recovery((), tuple(orphans), statistics)
