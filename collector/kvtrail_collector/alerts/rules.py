"""A rule: which measure, over which window, where it raises and where it clears, and what follows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from kvtrail_schema.degrade import Action, parse_action
from kvtrail_schema.errors import OrderInvalid
from msgspec import Meta

from kvtrail_collector.alerts.measures import MEASURES, Gathered

LONGEST_WINDOW_S: Final = 300

_Seconds = Annotated[float, Meta(ge=0, le=86_400)]


class Severity(StrEnum):
    """How urgent an alert is for people."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"raise_at": "raise", "clear_at": "clear"}
):
    """One rule. It fires above `raise` where that is over `clear`, else below; in between an alert stays as it is."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    measure: str
    raise_at: float
    clear_at: float
    severity: Severity = Severity.WARNING
    tier: str = ""
    """Only this tier; empty: each by itself."""
    code: str = ""
    """The code of the verdict, for measure `verdict`."""
    window_s: Annotated[int, Meta(ge=1, le=LONGEST_WINDOW_S)] = 10
    for_s: _Seconds = 0.0
    """So long it must be beyond `raise` before it fires."""
    hold_s: _Seconds = 30.0
    """So long it must be clear before the alert ends, and the action with it."""
    trial_s: _Seconds = 300.0
    """While an action hides the figure, and there is something that it keeps back, the alert ends only after this."""
    least: Annotated[int, Meta(ge=1)] = 1
    """With fewer observations in the window there is no figure."""
    action: str = ""
    """What to do while it fires; empty: tell people alone."""
    expires_s: Annotated[float, Meta(ge=5, le=3_600)] = 60.0
    """An engine that hears nothing more ends the action after this; while the alert fires it is told again before."""
    is_on: bool = True

    @property
    def fires_above(self) -> bool:
        """Whether large values are the bad ones."""
        return self.raise_at > self.clear_at

    @property
    def ordered(self) -> Action | None:
        """The action as orders have it."""
        return parse_action(self.action) if self.action else None


def problem_of(rule: Rule) -> str:
    """What in a rule cannot work, or an empty text."""
    if rule.measure not in MEASURES:
        return f"there is no measure {rule.measure!r}; there are {', '.join(MEASURES)}"
    if rule.raise_at == rule.clear_at:
        return "raise and clear are equal, so that it would flap: let them lie apart"
    if (rule.measure == "verdict") != bool(rule.code):
        return "measure verdict needs the code of a verdict, and no other takes one"
    if rule.tier and MEASURES[rule.measure].gathered is Gathered.ASKED:
        return f"measure {rule.measure} is the engine's, not a tier's"
    try:
        _ = rule.ordered
    except OrderInvalid as error:
        return str(error)
    return ""
