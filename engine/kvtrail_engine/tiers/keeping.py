"""From a copy's terms, on the clock of one process, to what a record says, on the wall clock, and back."""

from collections.abc import Callable
from dataclasses import dataclass

from kvtrail_engine.clock import Clock
from kvtrail_engine.tiers.block import Terms
from kvtrail_engine.tiers.envelope import Keeping


@dataclass(frozen=True, slots=True)
class WallTerms:
    """Any thread. A step of the wall clock moves what was written before it, as it must."""

    clock: Clock
    wall_ns: Callable[[], int]
    expiry_ns: int = 0
    """The longest that a record may be used; 0: for ever."""

    def keeping_of(self, terms: Terms) -> Keeping:
        """What a record that is written now says."""
        wall_ns = self.wall_ns()
        ahead_ns = wall_ns - self.clock.now_ns()
        ends_ns = [wall_ns + self.expiry_ns] if self.expiry_ns else []
        if terms.expires_ns is not None:
            ends_ns.append(terms.expires_ns + ahead_ns)
        until_ns = 0 if terms.priority_until_ns is None else terms.priority_until_ns + ahead_ns
        return Keeping(terms.priority, until_ns, min(ends_ns, default=0))

    def terms_of(self, keeping: Keeping) -> Terms:
        """The terms of a copy that a record left."""
        ahead_ns = self.wall_ns() - self.clock.now_ns()
        return Terms(
            keeping.priority,
            keeping.priority_until_ns - ahead_ns if keeping.priority_until_ns else None,
            keeping.expires_ns - ahead_ns if keeping.expires_ns else None,
        )
