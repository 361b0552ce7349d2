"""An import: the files of one source, read in their order, decoded, numbered, and given to an output."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from kvtrail_schema.events import EventsDropped
from kvtrail_schema.identity import Stream, keyed_id

from kvtrail_agent.importers.decoded import Bad, Decoded
from kvtrail_agent.importers.format import Decoder, Format, Source, TimeBase
from kvtrail_agent.importers.numbering import Numbered, Numbering
from kvtrail_agent.importers.records import Record

MOST_PROBLEMS: Final = 1_000
"""So many things that could not be read are told one by one; all are counted."""
_CHUNK: Final = 1 << 20


class Output(Protocol):
    """**Protocol:** takes numbered rows over."""

    def add(self, rows: Iterable[Numbered]) -> None:
        """Take rows over; may block."""
        ...

    def close(self) -> None:
        """All rows were given; return when they are where they shall be."""
        ...


class Problem(NamedTuple):
    """One thing that could not be read: file and line, and why."""

    where: str
    what: str


@dataclass(slots=True)
class StreamTotal:
    """What came into one stream."""

    stream: Stream
    events: int = 0
    lost: int = 0


@dataclass(slots=True)
class Totals:
    """What an import did."""

    records: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0
    problems: list[Problem] = field(default_factory=list)
    streams: dict[Stream, StreamTotal] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """All rows of all streams."""
        return sum(one.events for one in self.streams.values())


@dataclass(slots=True)
class Import:
    """One import: `run` once. `on_progress` is told the bytes read and the bytes there are."""

    format: Format
    key: bytes
    output: Output
    engine: str = ""
    on_progress: Callable[[int, int], None] = lambda _done, _total: None
    totals: Totals = field(default_factory=Totals)

    def run(self, paths: Sequence[Path]) -> Totals:
        """Read the files in their order. Bounded memory but for what decoders hold of copies.

        Raises:
            OSError: a file cannot be read. What was read before it was given to the output.
        """
        decoder = self.format.open(Source(self.key, self._number(paths)))
        fingerprint = f"{self.format.name}/{keyed_id(self.key, b'fingerprint'):016x}"
        numbering = Numbering(fingerprint, self.engine, self.format.name)
        sizes = [path.stat().st_size for path in paths]
        try:
            for index, path in enumerate(paths):
                self._file(decoder, numbering, path, (sum(sizes[:index]), sum(sizes)))
            self._take(decoder.finish(), numbering, "after the last record")
        except OSError:
            self.output.close()
            raise
        self.output.close()
        return self.totals

    def _number(self, paths: Sequence[Path]) -> int:
        """What tells these files from others, where their records have no time of day that does: a digest of what they hold."""
        if self.format.times is TimeBase.WALL:
            return 0
        digest = hashlib.blake2b(digest_size=8)
        for path in paths:
            for chunk in _chunks(path):
                digest.update(chunk)
        return int.from_bytes(digest.digest(), "little") >> 8

    def _file(self, decoder: Decoder, numbering: Numbering, path: Path, bounds: tuple[int, int]) -> None:
        """One file."""
        before, total = bounds
        for record in self.format.read(path):
            self.totals.records += 1
            self._take(self._decoded(decoder, record), numbering, f"{path}: {record.place}")
            self.on_progress(before + record.read_bytes, total)

    def _decoded(self, decoder: Decoder, record: Record) -> Decoded:
        """One record; what could not be read as one stays what it is."""
        return Decoded(bad=[record.value]) if isinstance(record.value, Bad) else decoder.decode(record.value, record.sequence)

    def _take(self, decoded: Decoded, numbering: Numbering, where: str) -> None:
        """Count, number and hand over what one record became."""
        totals = self.totals
        totals.seen += decoded.seen
        totals.unknown += decoded.unknown
        totals.remarks += decoded.remarks
        totals.quarantined += len(decoded.bad)
        room = max(MOST_PROBLEMS - len(totals.problems), 0)
        totals.problems += [Problem(_joined(where, bad.place), bad.problem) for bad in decoded.bad[:room]]
        for part in decoded.parts:
            rows = list(numbering.number(part))
            for row in rows:
                self._count(row)
            self.output.add(rows)

    def _count(self, row: Numbered) -> None:
        """One row of a stream."""
        total = self.totals.streams.setdefault(row.stream, StreamTotal(row.stream))
        total.events += 1
        total.lost += row.event.count if isinstance(row.event, EventsDropped) else 0


def _joined(where: str, place: str) -> str:
    """A place in a place."""
    return f"{where}, {place}" if place else where


def _chunks(path: Path) -> Iterator[bytes]:
    """A file in pieces."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
