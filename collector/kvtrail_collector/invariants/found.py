"""What a checker finds in some rows, and what it is asked."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from kvtrail_collector.invariants.rows import ABSENT, Ints, Rows

MOST_SHOWN: Final = 5


class Found(NamedTuple):
    """Occurrences of one code: in which tier, what was wrong, how many, and the first of them by seq."""

    code: str
    tier: int | None
    what: str
    cases: int
    seqs: tuple[int, ...]
    first_ns: int
    last_ns: int

    def plus(self, later: Found) -> Found:
        """Together with later ones of the same sort."""
        seqs = tuple(sorted((*self.seqs, *later.seqs))[:MOST_SHOWN])
        first, last = min(self.first_ns, later.first_ns), max(self.last_ns, later.last_ns)
        return self._replace(cases=self.cases + later.cases, seqs=seqs, first_ns=first, last_ns=last)


class Checker(Protocol):
    """**Protocol:** looks at the rows of one stream, in the order of seq, each once. Used by one thread."""

    @property
    def codes(self) -> tuple[str, ...]:
        """What it may find."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether it still knows all that it has to; where not, what it does not find is unknown."""
        ...

    def look(self, rows: Rows) -> list[Found]:
        """What is wrong in these rows, after all rows before."""
        ...


def found_at(code: str, rows: Rows, places: Ints, tiers: Ints | None = None, what: str = "") -> list[Found]:
    """One finding a tier for some rows; one in no tier for those that name none, or where none are given."""
    if not len(places):
        return []
    if tiers is None:
        return [_one(code, rows, places, None, what)]
    named = sorted(set(tiers.tolist()))
    return [_one(code, rows, places[tiers == tier], None if tier == ABSENT else tier, what) for tier in named]


def _one(code: str, rows: Rows, places: Ints, tier: int | None, what: str) -> Found:
    """The finding of some rows, which are in the order of seq."""
    t_ns = rows.t_ns[places]
    seqs = tuple(rows.seq[places[:MOST_SHOWN]].tolist())
    return Found(code, tier, what, len(places), seqs, int(t_ns.min()), int(t_ns.max()))
