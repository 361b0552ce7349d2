"""Helpers for tests of the ring: a small ring with its writer and its reader, and events by way of the emit methods."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.emit_methods import EmitMethods
from kvtrail_agent.ring_file import RingFile, create_ring, open_ring
from kvtrail_agent.ring_reader import Chunk, RingReader
from kvtrail_agent.writer_choice import WriterKind, c_writer_is_built, writer_in_use
from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.clock import Clock, ManualClock
from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.jsonl import enum_of
from kvtrail_schema.kinds import FIELDS_OF, REQUIRED_OF, Kind, kind_of
from kvtrail_schema.reasons import DropReason

from tests.real import require_real

STREAM: Final = Stream("test-engine", Epoch(0xFEDC_BA98_7654_3210), Rank(3))
SMALLEST_SLOTS: Final = 64
SMALLEST_TEXTS: Final = 4096
ALL: Final = 1 << 20


@dataclass
class TestRing:
    """Both ends of one ring."""

    __test__ = False  # no test class, whatever its name says

    path: Path
    file: RingFile
    writer: EmitMethods
    reader: RingReader

    def emit(self, event: Event) -> int:
        """Emit an event by the method of its kind."""
        return emit(self.writer, event)

    def take(self, most_rows: int = ALL) -> Chunk:
        """Read a chunk and release it."""
        chunk = self.reader.read(most_rows)
        if not chunk.is_empty:
            self.reader.release(chunk)
        return chunk

    def lose_seq(self) -> int:
        """Draw a seq that will never be written, as a thread does that is torn out of its emit."""
        return self.writer._draw()

    def close(self) -> None:
        """Let go of the writer's lock, as its death does."""
        self.file.close()


def make_ring(
    folder: Path,
    slot_count: int = SMALLEST_SLOTS,
    text_bytes: int = SMALLEST_TEXTS,
    clock: Clock | None = None,
    stream: Stream = STREAM,
    *,
    kind: WriterKind | None = None,
) -> TestRing:
    """A ring of the smallest size, whose clock stands still, by the writer that this process uses if none is named."""
    path = folder / f"{stream.epoch:016x}.ring"
    file = create_ring(path, stream, slot_count, text_bytes)
    writer = writer_class(kind)(file, clock or ManualClock(monotonic_ns=1_000))
    return TestRing(path, file, writer, RingReader(open_ring(path)))


def writer_class(kind: WriterKind | None = None) -> type[EmitMethods]:
    """The class of a writer; that in C is a real part, without which the calling test skips by name."""
    if (kind or writer_in_use()) is WriterKind.PYTHON:
        return EmitMethods
    require_real("C writer of the ring", found=c_writer_is_built(), how="install a C compiler, then `make install`")
    from kvtrail_agent.emit_fast import FastEmitMethods  # noqa: PLC0415 - only where the extension is built

    return FastEmitMethods


def emit(writer: EmitMethods, event: Event) -> int:
    """Emit an event by the method of its kind; absent fields keep their defaults."""
    kind = kind_of(event)
    present = {name: getattr(event, name) for name in FIELDS_OF[kind] if getattr(event, name) is not None}
    seq: int = getattr(writer, kind.name.lower())(**present, t_ns=event.t_ns)
    return seq


def events_in(chunk: Chunk) -> list[Event | UnknownEvent]:
    """The rows of a chunk as events."""
    return events_of(chunk.table)


def dropped_in(chunk: Chunk) -> list[tuple[str, str, int, int]]:
    """The drops of a chunk as (stage, reason, first, last)."""
    return [(Stage(d.stage).name, DropReason(d.reason).name, d.first_seq, d.last_seq) for d in chunk.drops]


def settled_seqs(chunk: Chunk) -> list[int]:
    """Every seq that a chunk accounts for, by a row or a drop, ascending; a seq told twice stands twice."""
    rows = chunk.table["seq"].to_numpy().tolist()
    drops = [seq for drop in chunk.drops for seq in range(drop.first_seq, drop.last_seq + 1)]
    return sorted([*rows, *drops])


def as_recorded(event: Event) -> Event:
    """The event that a ring can hold: a record says "absent" for an empty text and for the trace id that W3C forbids."""
    needs_text = "text" in REQUIRED_OF[kind_of(event)]
    changes: dict[str, str | None] = {}
    if getattr(event, "text", None) == "":
        changes["text"] = "-" if needs_text else None
    if getattr(event, "trace_id", None) == "0" * 32:
        changes["trace_id"] = None
    return msgspec.structs.replace(event, **changes)


def any_value(kind: Kind, name: str) -> Any:
    """A value that a field of a kind may hold, none of the special ones."""
    names = enum_of(kind, name)
    if names is not None:
        return next(iter(names))
    others: dict[Width, Any] = {Width.F64: 1.5, Width.BOOL: True, Width.TEXT: "text", Width.TRACE: "ab" * 16}
    return others.get(COLUMNS[name].width, 7)


def set_next_seq(ring: TestRing, seq: int) -> None:
    """Let a ring stand where it would after `seq - 1` events, all delivered."""
    ring.writer._begin_at(seq)
    ring.file.set_word(layout.READ_SEQ, seq - 1)
