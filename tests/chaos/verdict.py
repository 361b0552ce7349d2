"""What must hold after every round, read from the store's file: no row twice, order, and the engine's own state."""

from collections import Counter
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import msgspec
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, events_of
from kvtrail_schema.counters import RECORDER_COST
from kvtrail_schema.events import AgentHeartbeat, AgentStarted, AgentStopped, ClockStepped, CounterSampled, Event
from kvtrail_schema.kinds import EVENT_OF
from kvtrail_schema.lifecycle import fold

from tests.chaos.engine_process import GROUP

_LINES: Final = msgspec.json.Decoder(type=reduce(or_, EVENT_OF.values()))
_OF_THE_AGENT: Final = AgentHeartbeat | AgentStarted | AgentStopped | ClockStepped


class Stored(NamedTuple):
    """One stream as it lies in the store: its events in seq order, and what was declared lost."""

    engine: str
    epoch: int
    events: list[Event]
    dropped: set[int]


def stored_streams(store: Path) -> list[Stored]:
    """Every stream of a store that nobody has open."""
    with duckdb.connect(str(store), read_only=True) as connection:
        streams = connection.execute("SELECT stream_id, engine, epoch FROM streams ORDER BY ALL").fetchall()
        return [
            Stored(engine, epoch, _events(connection, number), _dropped(connection, number))
            for number, engine, epoch in streams
        ]


def _events(connection: duckdb.DuckDBPyConnection, stream: int) -> list[Event]:
    """The rows of a stream as events."""
    names = ", ".join(f'"{name}"' for name in EVENT_SCHEMA.names)
    found = connection.execute(f"SELECT {names} FROM events WHERE stream_id = ? ORDER BY seq", [stream])  # noqa: S608 - own names
    events = events_of(found.to_arrow_table().cast(EVENT_SCHEMA))
    strange = [event for event in events if not isinstance(event, Event)]
    assert strange == []
    return [event for event in events if isinstance(event, Event)]


def _dropped(connection: duckdb.DuckDBPyConnection, stream: int) -> set[int]:
    """The seqs that were declared lost."""
    ranges = connection.execute("SELECT first_seq, last_seq FROM drop_ranges WHERE stream_id = ?", [stream]).fetchall()
    return {seq for first, last in ranges for seq in range(first, last + 1)}


def journal_of(path: Path) -> list[Event]:
    """What an engine wrote down of what it had recorded; a line that its death cut off is none."""
    return [_LINES.decode(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _is_of_the_agent(event: Event) -> bool:
    """Whether an event is the recorder's own, which stands in no engine's journal."""
    return isinstance(event, _OF_THE_AGENT) or (isinstance(event, CounterSampled) and event.text == RECORDER_COST)


def check(stream: Stored, journal: list[Event]) -> int:
    """Hold a stream against its engine's own account; how many events were compared.

    Raises:
        AssertionError: a row stands twice, differs, is missing without a word, or leads to another state.
    """
    twice = [seq for seq, count in Counter(event.seq for event in stream.events).items() if count > 1]
    stored = {event.seq: event for event in stream.events}
    last = journal[-1].seq if journal else 0
    own = [event for event in stream.events if not _is_of_the_agent(event)]
    written = {event.seq for event in journal}
    unknown = [event.seq for event in own if event.seq <= last and event.seq not in written]
    missing = [event.seq for event in journal if event.seq not in stored and event.seq not in stream.dropped]
    differing = [event.seq for event in journal if event.seq in stored and stored[event.seq] != event]

    assert twice == []
    assert missing == []
    assert differing == []
    assert unknown == []
    assert sum(event.seq > last for event in own) <= GROUP
    assert fold(event for event in journal if event.seq in stored) == fold(event for event in own if event.seq <= last)
    return len(journal)
