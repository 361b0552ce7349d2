"""late-prefetch: sessions come much sooner than they were announced for, so that what is fetched for them is not there yet.

An engine that knew how little time there is would not begin to fetch.
"""

from kvtrail_schema.enums import Tier

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.hints import Hints


class LatePrefetch(Drill):
    """Shortens the lead of the hints that the load gives, which go on to promise the old one, and lengthens it again."""

    name = "late-prefetch"
    tier = Tier.NVME

    def __init__(self, hints: Hints, lead_ns: int = 2_000_000) -> None:
        self._hints = hints
        self._lead_ns = lead_ns
        self._before_ns = hints.lead_ns

    @property
    def value(self) -> float:
        """The lead that is left, in ns."""
        return float(self._lead_ns)

    def begin(self, engine: Engine) -> None:
        """Hint late."""
        del engine
        self._before_ns, self._hints.lead_ns = self._hints.lead_ns, self._lead_ns
        self._hints.promised_ns = self._before_ns

    def end(self, engine: Engine) -> None:
        """Hint in good time again."""
        del engine
        self._hints.lead_ns, self._hints.promised_ns = self._before_ns, 0
