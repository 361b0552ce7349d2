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

    def merge_from(self, source: str) -> str:
        """The statement that folds the rows of a source into the table."""
        return self.merge.substitute(source=source)

    def clear(self) -> str:
        """The statement that empties the table."""
        return f"DELETE FROM {self.table}"  # noqa: S608  # a constant of ours


def numbers(*kinds: Kind) -> str:
    """Kinds as the inside of an SQL list."""
    return ", ".join(str(kind.value) for kind in kinds)
