"""The shape of a projection: one grouped query over events, and one merge of its answer into a table."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Final

from kvtrail_schema.kinds import Kind

INCOMING: Final = "incoming"
"""The name under which SQL sees the new rows of a commit."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A table computed from events. `$source` in `merge` stands for `events` or for the new rows of a commit.

    `key` is the column that, with the stream, says to which row of the table an event belongs.
    """

    table: str
    key: str
    merge: Template
    kinds: tuple[Kind, ...] = ()
    """The kinds of events that it looks at; none named: all events with all columns, which costs a commit far more."""
    columns: tuple[str, ...] = ()
    """The columns that it looks at, beside stream and kind."""

    def merge_from(self, source: str) -> str:
        """The statement that folds the rows of a source into the table."""
        return self.merge.substitute(source=source)

    def clear(self) -> str:
        """The statement that empties the table."""
        return f"DELETE FROM {self.table}"  # noqa: S608  # a constant of ours


def numbers(*kinds: Kind) -> str:
    """Kinds as the inside of an SQL list."""
    return ", ".join(str(kind.value) for kind in kinds)


def in_kinds(kinds: str) -> str:
    """The condition that a row is of some kinds.

    It stands on a sum, not on the column: DuckDB pushes conditions on columns down to Arrow, which then filters all that the
    query reads, and takes as long for that as everything else in a commit but the insert.
    """
    return f"kind::INTEGER + 0 IN ({kinds})"
