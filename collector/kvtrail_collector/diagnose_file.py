"""Diagnosis of a file of JSON Lines: events from anywhere, also written by hand, judged without a collector.

A line that is no event is counted and left out: it never ends the diagnosis, and never makes it surer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import duckdb
import msgspec
import pyarrow as pa
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, table_of
from kvtrail_schema.batch import StreamState
from kvtrail_schema.clock import Clocks
from kvtrail_schema.errors import JsonLinesError
from kvtrail_schema.events import AgentHeartbeat, AgentStopped, Event
from kvtrail_schema.identity import Stream
from kvtrail_schema.jsonl import Line, read_readable

from kvtrail_collector.attribution import attribute
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.coverage import Missing
from kvtrail_collector.detectors.judge import Thresholds
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.diagnose import diagnose
from kvtrail_collector.diagnose_shapes import Verdicts
from kvtrail_collector.errors import NoEvents
from kvtrail_collector.loss import loss_of
from kvtrail_collector.loss_shapes import Loss
from kvtrail_collector.store.account import Account, Marks
from kvtrail_collector.store.drops import drops_in, merge_drops
from kvtrail_collector.store.ranges import RangeSet, SeqRange

_SHOWN_LINES: Final = 3
_FEW_REQUESTS: Final = 60
_MANY_ROWS: Final = 100_000


class FileEvents(NamedTuple):
    """What a file holds: its streams in the order of their names, all rows with `stream_id`, and lines that are none."""

    streams: tuple[Stream, ...]
    table: pa.Table
    accounts: tuple[Account, ...]
    unreadable: tuple[str, ...]
    unknown_kinds: int = 0


def events_of_lines(lines: Iterable[str], *, source: str = "<lines>") -> FileEvents:
    """Read JSON Lines. About 30 µs a line. A line that stands twice with the same seq counts once."""
    found: dict[Stream, dict[int, list[Event]]] = {}
    unreadable: list[str] = []
    unknown_kinds = 0
    for line in read_readable(lines, source=source):
        if not isinstance(line, Line):
            unreadable.append(str(line))
            unknown_kinds += _is_of_unknown_kind(line)
            continue
        same = found.setdefault(line.stream, {}).setdefault(line.event.seq, [])
        if line.event not in same:
            same.append(line.event)
    streams = tuple(sorted(found))
    parts = [_part(number, found[stream]) for number, stream in enumerate(streams)]
    table = pa.concat_tables(parts) if parts else _with_stream(EVENT_SCHEMA.empty_table(), 0)
    accounts = tuple(_account(number, stream, found[stream], parts[number]) for number, stream in enumerate(streams))
    return FileEvents(streams, table, accounts, tuple(unreadable), unknown_kinds)


def diagnose_lines(lines: Iterable[str], *, source: str = "<lines>", thresholds: Thresholds | None = None) -> Verdicts:
    """What is wrong in a file of JSON Lines. Runs anywhere; keeps all of it in memory.

    Raises:
        NoEvents: not one line is an event, also of a newer version; there is nothing that could be well or ill.
    """
    held = events_of_lines(lines, source=source)
    if not held.table.num_rows and not held.unknown_kinds:
        raise NoEvents(_first_of(held.unreadable), where=source, do="give events as JSON Lines: docs/verdicts.md has the form")
    return diagnose_events(held, thresholds=thresholds)


def _first_of(unreadable: tuple[str, ...]) -> str:
    """Why a file has no event."""
    if not unreadable:
        return "it is empty"
    return f"none of its {len(unreadable):,} lines is an event; the first: {unreadable[0]}"


def diagnose_events(held: FileEvents, *, thresholds: Thresholds | None = None) -> Verdicts:
    """What is wrong among events that were read from a file."""
    threads = 1 if held.table.num_rows < _MANY_ROWS else 0
    with duckdb.connect(config={"threads": threads} if threads else {}) as connection:
        scene = scene_of(connection, held)
        answer = diagnose(scene, _attribution(held), unreadable=len(held.unreadable), thresholds=thresholds)
    return msgspec.structs.replace(answer, missing=(*_unread(held.unreadable), *answer.missing))


def scene_of(connection: duckdb.DuckDBPyConnection, held: FileEvents, bounds: Bounds | None = None) -> Scene:
    """Put the events of a file into an empty database, and make a scene of it."""
    connection.register("file_events", held.table)
    connection.execute("CREATE TABLE events AS SELECT *, NULL::TEXT AS extra FROM file_events")
    connection.unregister("file_events")
    connection.execute("CREATE TABLE streams (stream_id INTEGER, engine TEXT, epoch UBIGINT, rank USMALLINT)")
    for number, stream in enumerate(held.streams):
        connection.execute("INSERT INTO streams VALUES (?, ?, ?, ?)", [number, stream.engine, stream.epoch, stream.rank])
    return Scene(connection, books_of(held), bounds, unknown_lines=held.unknown_kinds)


def books_of(held: FileEvents) -> Loss:
    """The balance of the streams of a file: nothing of it is still on its way."""
    return loss_of(held.accounts, now_wall_ns=2**62)


def _is_of_unknown_kind(error: JsonLinesError) -> bool:
    """Whether a line is an event of a kind that this version does not know, rather than no event."""
    return error.field == "kind"


def _part(number: int, events: dict[int, list[Event]]) -> pa.Table:
    """The rows of one stream."""
    return _with_stream(table_of(event for seq in sorted(events) for event in events[seq]), number)


def _with_stream(table: pa.Table, number: int) -> pa.Table:
    """A table with the number of its stream on every row."""
    return table.append_column("stream_id", pa.array([number] * table.num_rows, pa.int32()))


def _account(number: int, stream: Stream, events: dict[int, list[Event]], rows: pa.Table) -> Account:
    """The books of one stream of a file."""
    said = [event.produced for same in events.values() for event in same if isinstance(event, AgentHeartbeat | AgentStopped)]
    stored = RangeSet().add(SeqRange(seq, seq) for seq in events)
    drops = merge_drops(drops_in(rows))
    marks = Marks(max(said, default=0), StreamState.RUNNING, 0, Clocks(monotonic_ns=0, wall_ns=0, error_ns=0))
    return Account(number, stream, stored, drops, marks)


def _attribution(held: FileEvents) -> Attribution | None:
    """What made the slow requests of a file slow; None where too few are in it to say."""
    arrivals = sum(1 for kind in held.table["kind"].to_pylist() if kind == 1)
    if arrivals < _FEW_REQUESTS:
        return None
    homes = [held.streams[int(str(number))] for number in held.table["stream_id"].to_pylist()]
    busiest = _busiest(homes, held.table)
    table = held.table.filter(pa.array([home.engine == busiest for home in homes]))
    homes = [home for home in homes if home.engine == busiest]
    table = table.append_column("engine", pa.array([home.engine for home in homes], pa.utf8()))
    table = table.append_column("epoch", pa.array([home.epoch for home in homes], pa.uint64()))
    return attribute(table.append_column("rank", pa.array([home.rank for home in homes], pa.uint16())))


def _busiest(homes: list[Stream], table: pa.Table) -> str:
    """The engine with most requests: those of several have nothing to do with each other's times."""
    arrived = Counter(home.engine for home, kind in zip(homes, table["kind"].to_pylist(), strict=True) if kind == 1)
    return max(sorted(arrived), key=arrived.__getitem__)


def _unread(unreadable: tuple[str, ...]) -> list[Missing]:
    """Lines that were no events, with the first of them."""
    if not unreadable:
        return []
    shown = "; ".join(unreadable[:_SHOWN_LINES])
    rest = len(unreadable) - _SHOWN_LINES
    shown += f"; and {rest:,} more" if rest > 0 else ""
    return [Missing(f"{len(unreadable)} lines", f"could not be read, and count as lost: {shown}")]
