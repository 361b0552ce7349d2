"""Numbers of a source in their order: what came, what is missing, what came twice, and when it began anew."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Arrival(Enum):
    """What a number says of what it numbers."""

    NEXT = "next"
    FIRST = "first"
    """Nothing came before it, so nothing is known of what it follows."""
    AFTER_GAP = "after_gap"
    AGAIN = "again"
    RESTARTED = "restarted"


class Judged(NamedTuple):
    """An arrival, and how many numbers are missing before it."""

    arrival: Arrival
    missing: int = 0


@dataclass(slots=True)
class Life:
    """The numbers of one producer, which count up from a start and begin anew when it restarts; used by one thread."""

    last: int | None = None
    last_ns: int = 0

    def take_once(self, number: int) -> Judged:
        """Judge the next number of a life that is known to be one: a number that is not larger than the last came before."""
        return Judged(Arrival.AGAIN) if self.last is not None and number <= self.last else self.take(number, 0)

    def take(self, number: int, t_ns: int) -> Judged:
        """Judge the next number. A smaller one is a restart where its time is later, else the same thing once more."""
        before, before_ns = self.last, self.last_ns
        if before is not None and number <= before and t_ns <= before_ns:
            return Judged(Arrival.AGAIN)
        self.last, self.last_ns = number, max(t_ns, before_ns)
        if before is None:
            return Judged(Arrival.FIRST)
        if number <= before:
            return Judged(Arrival.RESTARTED)
        missing = number - before - 1
        return Judged(Arrival.AFTER_GAP, missing) if missing else Judged(Arrival.NEXT)
