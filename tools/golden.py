"""Writes golden frames for the tests of the codec: bytes that every later version must go on reading.

Run as `python -m tools.golden` after a version or a kind was added. A golden file that exists is never written again:
its bytes are what was sent once. Beside `NAME.bin` stand its header (`NAME.header.json`) and its events (`NAME.jsonl`).
"""

import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import msgspec
from kvtrail_cli.bench.mix import Mix
from kvtrail_schema.arrow_schema import UnknownEvent, events_of, table_of
from kvtrail_schema.batch import VERSION, BatchHeader, DropRange, StreamState, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.columns import COLUMNS, Width, limits
from kvtrail_schema.enums import Stage
from kvtrail_schema.events import Event, RequestArrived, RequestFinished
from kvtrail_schema.identity import Epoch, Rank, RequestId, Stream
from kvtrail_schema.jsonl import enum_of, write_line
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind
from kvtrail_schema.reasons import DropReason

GOLDEN: Final = Path(__file__).resolve().parent.parent / "tests/schema/golden"
STREAM: Final = Stream("engine-é", Epoch(0xFEDC_BA98_7654_3210), Rank(3))
_CLOCKS: Final = Clocks(monotonic_ns=5_000_000_000, wall_ns=1_750_000_000_123_456_789, error_ns=412)


def header(first_seq: int, last_seq: int, **others: Any) -> BatchHeader:
    """A header of the golden stream."""
    place: dict[str, Any] = {"engine": STREAM.engine, "epoch": STREAM.epoch, "rank": STREAM.rank, "clocks": _CLOCKS}
    return BatchHeader(version=VERSION, first_seq=first_seq, last_seq=last_seq, count=0, **(place | others))


def _value(kind: Kind, name: str) -> object:
    """A value that differs from field to field, uses the whole width, and is the same on every run."""
    drawn = zlib.crc32(f"{kind.name}.{name}".encode())
    names: type[IntEnum] | None = enum_of(kind, name)
    if names is not None:
        members = list(names)
        return members[drawn % len(members)]
    match COLUMNS[name].width:
        case Width.F64:
            return drawn / 7
        case Width.BOOL:
            return bool(drawn & 1)
        case Width.TEXT:
            return f'{{"text of":"{kind.name.lower()} ü \\n"}}'
        case Width.TRACE:
            return f"{drawn:032x}"
        case width:
            low, high = limits(width) or (0, 0)
            return low + (drawn * 0x9E37_79B9_7F4A_7C15) % (high - low + 1)


def every_kind() -> list[Event]:
    """Each kind twice: with all of its fields, and with the required ones alone; seqs have holes, times run back."""
    full = [{name: _value(kind, name) for name in FIELDS_OF[kind]} for kind in Kind]
    bare = [{name: _value(kind, name) for name in REQUIRED_OF[kind]} for kind in Kind]
    kinds = [*Kind, *Kind]
    return [
        EVENT_OF[kind](seq=10 + 3 * index, t_ns=1_000_000 - 700 * index, **values)
        for index, (kind, values) in enumerate(zip(kinds, [*full, *bare], strict=True))
    ]


def golden_batches() -> Iterator[tuple[str, BatchHeader, list[Event]]]:
    """Every golden batch: its name, its header, its events."""
    events = every_kind()
    yield f"v{VERSION}-every-kind", header(events[0].seq, events[-1].seq, produced=900), events
    drops = (
        DropRange(Stage.RING, DropReason.FULL, 11, 12, 2),
        DropRange(Stage.PROCESS, DropReason.KILLED, 901, 2**64 - 2, 40),
    )
    yield f"v{VERSION}-killed", header(0, 0, produced=2**64 - 2, drops=drops, state=StreamState.KILLED), []
    unknown = (DropRange(42, DropReason.FULL, 1, 2, 2), DropRange(Stage.RING, 251, 5, 6, 2), DropRange(43, 252, 7, 9, 1))
    two: list[Event] = [
        RequestArrived(seq=3, t_ns=1_000, req=RequestId(41), tokens=12),
        RequestFinished(seq=4, t_ns=9_000, req=RequestId(41), tokens=7),
    ]
    yield f"v{VERSION}-header-from-a-newer-sender", header(3, 4, produced=9, drops=unknown, state=17), two
    many = [event for event in events_of(Mix(40, seed=3).table().slice(1_500, 160)) if not isinstance(event, UnknownEvent)]
    yield f"v{VERSION}-overlapping-requests", header(many[0].seq, many[-1].seq, produced=9_000), many


def main() -> None:
    """Write what does not exist yet."""
    for name, head, events in golden_batches():
        frame = GOLDEN / f"{name}.bin"
        if frame.exists():
            continue
        frame.write_bytes(encode_batch(head, table_of(events)))
        shown = msgspec.structs.replace(head, count=len(events))
        frame.with_suffix(".header.json").write_bytes(msgspec.json.format(msgspec.json.encode(shown)) + b"\n")
        frame.with_suffix(".jsonl").write_text("".join(write_line(STREAM, event) + "\n" for event in events))


if __name__ == "__main__":
    main()
