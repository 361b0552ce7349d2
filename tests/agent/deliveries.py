"""What arrived in a directory of segments, stream by stream, as a collector would keep its books."""

from dataclasses import dataclass, field
from pathlib import Path

from kvtrail_agent.transports.file import read_segments
from kvtrail_schema.arrow_schema import UnknownEvent, events_of
from kvtrail_schema.batch import BatchHeader, decode_batch
from kvtrail_schema.events import Event


@dataclass
class Delivered:
    """One stream: its events by seq, what was declared lost, and its headers in order of arrival."""

    events: dict[int, Event | UnknownEvent] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    headers: list[BatchHeader] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)

    @property
    def produced(self) -> int:
        """The highest seq that any header stated."""
        return max(header.produced for header in self.headers)

    @property
    def unaccounted(self) -> set[int]:
        """Seqs that were produced, and neither arrived nor were declared lost."""
        return set(range(1, self.produced + 1)) - self.events.keys() - self.dropped


def deliveries(directory: Path) -> dict[int, Delivered]:
    """Every stream of a directory by its epoch; a seq that comes twice stands once, and is noted if it differs."""
    found: dict[int, Delivered] = {}
    for frame in read_segments(directory):
        header, table = decode_batch(frame)
        stream = found.setdefault(header.epoch, Delivered())
        stream.headers.append(header)
        for drop in header.drops:
            stream.dropped.update(range(drop.first_seq, drop.last_seq + 1))
        for event in events_of(table):
            if stream.events.setdefault(event.seq, event) != event:
                stream.differing.append(event.seq)
    return found
