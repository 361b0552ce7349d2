"""Up to when ledgers of each stream are kept, and what was last seen of its transfers and steps.

Rows mostly come in order: what a commit brings changes nothing that is kept. To see that at the cost of a few comparisons,
the writer remembers some numbers of each stream. Where they do not suffice, the tables are asked (`late.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

import duckdb

LOOK_NS: Final = 60_000_000_000
"""How long before its arrival and after its end a request's ledger looks for transfers and steps."""

_KEPT: Final = "SELECT stream_id, max(end_ns) FROM request_ledgers GROUP BY stream_id"
_LARGEST_OPS: Final = "SELECT stream_id, max(op) FROM ops GROUP BY stream_id"


@dataclass(frozen=True, slots=True)
class Notes:
    """What the writer remembers of one stream: of its transfers all, of its steps since this process saw any."""

    largest_op: int = -1
    """No op with a larger id has a row."""
    largest_step: int = -1
    """No step with a larger id has a row, as far as this process saw."""
    open_steps: Mapping[int, int] = field(default_factory=dict)
    """When steps began that have not ended: the last few."""
    started_ns: int | None = None
    """When the latest step began, as far as this process saw."""
    finished_ns: int | None = None
    """When the latest end of a step was, as above."""


NOTHING: Final = Notes()


class Reach:
    """What is remembered of all streams. Notes belong to the writer's thread; the rest is for any thread."""

    def __init__(self, kept_ns: Mapping[int, int], largest_ops: Mapping[int, int]) -> None:
        self._notes = {stream_id: Notes(largest_op=op) for stream_id, op in largest_ops.items()}  # of the writer's thread
        self._changed = threading.Condition()
        self._kept_ns = dict(kept_ns)  # guarded by _changed
        self._begun = self._finished = 0  # guarded by _changed; commits

    @classmethod
    def load(cls, connection: duckdb.DuckDBPyConnection) -> Self:
        """What the tables say. Looks at two columns of each."""
        return cls(dict(connection.execute(_KEPT).fetchall()), dict(connection.execute(_LARGEST_OPS).fetchall()))

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Surrounds a commit: whoever announces something waits for the one under way."""
        with self._changed:
            self._begun += 1
        try:
            yield
        finally:
            with self._changed:
                self._finished += 1
                self._changed.notify_all()

    def announce(self, stream_id: int, end_ns: int) -> None:
        """Say that ledgers up to a time are computed now, from a moment of the store that begins after this call.

        Rows of later commits that change one of them touch its request. Blocks until the commit under way has ended.
        """
        with self._changed:
            self._kept_ns[stream_id] = max(end_ns, self._kept_ns.get(stream_id, end_ns))
            under_way = self._begun
            self._changed.wait_for(lambda: self._finished >= under_way)

    def kept_ns(self) -> dict[int, int]:
        """The latest end of a ledger that is kept, or computed now, by stream. Any thread."""
        with self._changed:
            return dict(self._kept_ns)

    def notes(self, stream_id: int) -> Notes:
        """What is remembered of a stream. The writer's thread."""
        return self._notes.get(stream_id, NOTHING)

    def remember(self, notes: Mapping[int, Notes]) -> None:
        """Take over what a commit has left. The writer's thread."""
        self._notes.update(notes)
