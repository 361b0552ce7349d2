"""The pages: one question each. To add one: name it here, write `pages/NAME.py`, and give its function in `app`."""

from enum import Enum
from typing import NamedTuple


class _About(NamedTuple):
    """What there is to say of a page."""

    path: str
    title: str
    question: str
    narrowed_by: tuple[str, ...] = ()


_ALL = ("rank", "tenant", "model", "time")


class Place(Enum):
    """A page: its address, its name in the row of links, the question that it answers, and what narrows the answer."""

    NOW = _About("now", "Now", "How is it now?", _ALL)
    SPIKE = _About("spike", "Spike", "Why was it slow?")
    REQUEST = _About("request", "Request", "Where did its time go?", ("time",))
    TIERS = _About("tiers", "Tiers", "Which tier is in the way?", _ALL)
    PREFETCH = _About("prefetch", "Prefetch", "Does fetching ahead pay?", _ALL)
    TENANTS = _About("tenants", "Tenants", "Who uses what, and is it theirs?", ("rank", "time"))
    ALERTS = _About("alerts", "Alerts", "What acts, and does it help?")
    RECORDER = _About("recorder", "Recorder", "Can I trust the record?", ("rank", "time"))

    @property
    def path(self) -> str:
        """The last part of its address."""
        return self.value.path

    @property
    def title(self) -> str:
        """Its name in the row of links."""
        return self.value.title

    @property
    def question(self) -> str:
        """What it answers."""
        return self.value.question

    def narrowed_by(self, name: str) -> bool:
        """Whether `rank`, `tenant`, `model` or `time` narrow its answer; the engine always does."""
        return name in self.value.narrowed_by
