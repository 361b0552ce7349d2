"""mix-shift: nothing is broken; the load itself has longer prompts for a while. The load's generator does it."""

from kvtrail_engine.drills.base import Drill
from kvtrail_engine.engine import Engine


class MixShift(Drill):
    """Marks the stretch in which more of the arrivals are documents."""

    name = "mix-shift"

    def __init__(self, document_share: float = 0.4) -> None:
        self.document_share = document_share

    @property
    def value(self) -> float:
        """The share of documents."""
        return self.document_share

    def begin(self, engine: Engine) -> None:
        """The arrivals were drawn before."""

    def end(self, engine: Engine) -> None:
        """As above."""
