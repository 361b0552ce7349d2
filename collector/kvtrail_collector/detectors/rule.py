"""What a detector of mechanisms and broken invariants is: one value, that says all there is to say about a code.

A rule is a question in SQL over a `Scene`, and the words for the person who reads the answer. Each row of the answer is
one verdict. Columns with these names have a meaning, all others are evidence, under their own name:

- `tier` (number), `ns` (namespace): where, and whose
- `touched_ns`: the time or, failing that, the work that it cost; ranks mechanisms
- `share`: 0 to 1, of what was looked at; absent: 1
- `sure`: confidence from 0 to 1, before coverage; absent: 1
- `cases`: how many occurrences the row stands for; absent: 1
- `refs`: up to five events that show it
- `also`: codes that the same events would give as well

To add a code: write its file in the folder of its family, name it there in `__init__.py`, give it a test that fires and
one that is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kvtrail_schema.kinds import Kind

if TYPE_CHECKING:
    from kvtrail_collector.detectors.scene import Scene

Cell = float | int | str | list[object] | None
Row = dict[str, Cell]
Find = Callable[["Scene", Mapping[str, float]], list[Row]]


class Family(Enum):
    """What a code is about; `rank` is its place in a report (LEDGER §6)."""

    INTEGRITY = ("integrity", 0)
    HANGS = ("hangs", 1)
    LATENCY = ("latency", 3)
    PREFETCH = ("prefetch", 3)
    REACH = ("reach", 3)
    POOLS = ("pools and disks", 3)
    STREAM = ("the stream", 4)
    FIGURES = ("figures that lie", 5)

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.value[0]

    @property
    def rank(self) -> int:
        """Smaller ones stand first in a report; population verdicts have 2."""
        return self.value[1]


POPULATION_RANK = 2


class Basis(StrEnum):
    """On what a verdict stands: the events of a mechanism with their counts, or one rule that was broken."""

    MECHANISM = "mechanism"
    INVARIANT = "invariant"


class Evidence(Enum):
    """Whether a verdict follows from what was seen, or from what was not: a lost event may explain the latter.

    What is absent follows an event that is stored (the end of a load), or may be older than all that is stored (the creation
    of a block): then what retention let go of may explain it, too.
    """

    PRESENCE = "presence"
    ABSENCE = "absence"
    ABSENCE_EVER = "absence, ever,"

    @property
    def is_absence(self) -> bool:
        """Whether a lost event may explain what was found."""
        return self is not Evidence.PRESENCE


class Threshold(NamedTuple):
    """A number that can be set, with its default, its unit, and what it bounds."""

    name: str
    default: float
    unit: str
    meaning: str


class Need(NamedTuple):
    """What a log must have for this code to be judged at all: an event of one of these kinds, with one of these fields."""

    kinds: tuple[Kind, ...]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One code. `question` is SQL, with its thresholds as `$name`; or `find` answers in its place.

    `triggers` are kinds without any of which the question needs not be asked. Their absence is good news, not missing
    input: that is what `needs` says.
    """

    code: str
    family: Family
    basis: Basis
    means: str
    check: str
    action: str
    unlike: str
    question: str = ""
    find: Find | None = None
    needs: tuple[Need, ...] = ()
    triggers: tuple[Kind, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    evidence: Evidence = Evidence.PRESENCE

    def settings(self, given: Mapping[str, float]) -> dict[str, float]:
        """The value of each threshold: as given, or its default."""
        return {threshold.name: float(given.get(threshold.name, threshold.default)) for threshold in self.thresholds}
