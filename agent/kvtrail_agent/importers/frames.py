"""Numbered rows as frames: what a transport carries and a store takes. Runs in an import or a relay; some 20 µs a row."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from kvtrail_schema import batch
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import BatchHeader, Clocks, StreamState
from kvtrail_schema.identity import Stream

from kvtrail_agent.importers.numbering import Numbered

ROWS_A_FRAME: Final = 8_192
UNKNOWN: Final = "imported"
"""The column that carries what a decoder does not know; readers keep it, unread, in `extra`."""

_SURELY_WALL_NS: Final = 10**18
"""Times from 2001 on; a clock that counts from a start of a machine or a process is nowhere near."""
_UNKNOWN_NS: Final = 86_400 * 10**9

Send = Callable[[bytes, BatchHeader], None]
"""Takes a frame over."""


@dataclass(slots=True)
class Frames:
    """Collects rows a stream and sends them as frames. `anchor_wall_ns` is the time of day of a source that tells none."""

    send: Send
    anchor_wall_ns: int
    rows_a_frame: int = ROWS_A_FRAME
    _held: defaultdict[Stream, list[Numbered]] = field(default_factory=lambda: defaultdict(list))
    _produced: dict[Stream, int] = field(default_factory=dict)
    _clocks: dict[Stream, Clocks] = field(default_factory=dict)

    def add(self, rows: Iterable[Numbered]) -> None:
        """Take rows over; a stream that has a frame full is sent."""
        for row in rows:
            held = self._held[row.stream]
            held.append(row)
            if len(held) >= self.rows_a_frame:
                self._send(row.stream)

    def close(self) -> None:
        """Send what is left, and say of each stream that it ended where it did."""
        for stream in list(self._held):
            self._send(stream)
        for stream, produced in self._produced.items():
            header = self._header(stream, (), produced, StreamState.STOPPED)
            self.send(batch.encode_batch(header, table_of(())), header)

    def _send(self, stream: Stream) -> None:
        """One frame of a stream."""
        rows = self._held.pop(stream, [])
        if not rows:
            return
        table = table_of(row.event for row in rows)
        if any(row.extra for row in rows):
            table = table.append_column(UNKNOWN, pa.array([row.extra for row in rows], pa.utf8()))
        produced = self._produced[stream] = rows[-1].event.seq
        self._clocks.setdefault(stream, self._clocks_of(rows))
        header = self._header(stream, rows, produced, StreamState.RUNNING)
        self.send(batch.encode_batch(header, table), header)

    def _clocks_of(self, rows: list[Numbered]) -> Clocks:
        """What ties the times of a stream to the time of day: they are such times, or the anchor stands for the first."""
        first_ns, last_ns = rows[0].event.t_ns, max(row.event.t_ns for row in rows)
        if last_ns >= _SURELY_WALL_NS:
            return Clocks(monotonic_ns=last_ns, wall_ns=last_ns, error_ns=0)
        return Clocks(monotonic_ns=first_ns, wall_ns=self.anchor_wall_ns, error_ns=_UNKNOWN_NS)

    def _header(self, stream: Stream, rows: "list[Numbered] | tuple[()]", produced: int, state: StreamState) -> BatchHeader:
        """The header of a frame."""
        return BatchHeader(
            version=batch.VERSION,
            engine=stream.engine,
            epoch=stream.epoch,
            rank=stream.rank,
            first_seq=rows[0].event.seq if rows else 0,
            last_seq=rows[-1].event.seq if rows else 0,
            count=len(rows),
            produced=produced,
            clocks=self._clocks[stream],
            state=state,
        )
