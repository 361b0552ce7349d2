"""What is wrong, in lines: the costliest spike with its time, what rules find, and how much that they find nothing says."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kvtrail_dashboards.answers import Attribution, Verdict, Window
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.compute.events import name_of_event
from kvtrail_dashboards.compute.figures import percent
from kvtrail_dashboards.compute.names import Names
from kvtrail_dashboards.compute.notices import WHOLE, Level, Notice
from kvtrail_dashboards.compute.verdict_words import words_of
from kvtrail_dashboards.compute.wall import WallTime
from kvtrail_dashboards.page_answers import Verdicts

MAX_VERDICTS: Final = 5
POPULATION: Final = "population"
_FIGURES: Final = 4


class Stretch(Enum):
    """Where a spike lies, beside the stretch of time that a page is about."""

    WITHIN = "within"
    EARLIER = "earlier"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One verdict in a line, what helps, and where to look closer: the spike's window, or an event that shows it.

    `figures` are those of a mechanism; a spike has its own page for them, and `when` it was.
    """

    code: str
    where: str
    headline: str
    sure: str
    window: tuple[int, int] | None
    event: str | None
    action: str = ""
    figures: str = ""
    when: str = ""
    stretch: Stretch = Stretch.WITHIN


def spike_lines(attribution: Attribution, names: Names, wall: WallTime, asked: Asked) -> tuple[VerdictLine, ...]:
    """The spike that was searched for, by cause; one without a named cause is told, too. Nothing where there is none."""
    window = attribution.window
    if window is None:
        return ()
    when, stretch = wall.span(window), stretch_of(window, asked)
    if attribution.verdicts:
        return tuple(_spike_line(verdict, several, names, when, stretch) for verdict, several in _alike(attribution.verdicts))
    why = attribution.why_not or "no verdict names its cause"
    sure, held = f"{why[:1].upper()}{why[1:]}.", (window.start_ns, window.end_ns)
    return (VerdictLine("SPIKE", "", "Requests were slower for a while.", sure, held, None, when=when, stretch=stretch),)


def rule_lines(verdicts: Sequence[Verdict], names: Names) -> tuple[VerdictLine, ...]:
    """What is no matter of a spike, in the collector's order; those of one code at one place are one line."""
    own = [verdict for verdict in verdicts if verdict.basis != POPULATION]
    return tuple(_rule_line(verdict, several, names) for verdict, several in _alike(own))


def stretch_of(window: Window, asked: Asked) -> Stretch:
    """Where a window lies, beside what is asked about."""
    if asked.start_ns is not None and window.end_ns <= asked.start_ns:
        return Stretch.EARLIER
    return Stretch.LATER if asked.end_ns is not None and window.start_ns >= asked.end_ns else Stretch.WITHIN


def nothing_found(verdicts: Verdicts) -> Notice:
    """That no rule finds anything is good news only of what was seen; the words claim no more."""
    if verdicts.window is None or not verdicts.window.requests:
        return Notice(Level.NOTE, "No request arrived in this stretch of time,", "so rules had next to nothing to look at.")
    if verdicts.coverage is None or verdicts.coverage < WHOLE:
        what = f"No rule finds anything else, but of the events of this engine {percent(verdicts.coverage)} are stored."
        return Notice(Level.NOTE, what, "What is missing may hide something: see the page Recorder.")
    blind = len(verdicts.missing)
    if blind:
        things = "one kind of event" if blind == 1 else f"{blind} kinds of event"
        return Notice(Level.GOOD, "No rule finds anything else in what was recorded.", f"{things} never came; see below.")
    return Notice(Level.GOOD, "Every rule was asked; no other finds anything.", "")


def _alike(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, int]]:
    """The gravest of each code at one place, and how many there are."""
    alike: dict[tuple[str, str | None, str | None], list[Verdict]] = {}
    for verdict in verdicts:
        alike.setdefault((verdict.code, verdict.tier, verdict.tenant), []).append(verdict)
    return [(several[0], len(several)) for several in alike.values()]


def _spike_line(verdict: Verdict, times: int, names: Names, when: str, stretch: Stretch) -> VerdictLine:
    """One cause of a spike."""
    words, window = words_of(verdict, names), verdict.window
    held = None if window is None else (window.start_ns, window.end_ns)
    sure = f"{words.share} of the excess, certainty {words.certainty}.{_often(times)}"
    return VerdictLine(words.code, words.where, words.headline, sure, held, None, words.action, when=when, stretch=stretch)


def _rule_line(verdict: Verdict, times: int, names: Names) -> VerdictLine:
    """A broken rule, or a mechanism with its figures; and how often it was found."""
    words = words_of(verdict, names)
    figures = ", ".join(f"{name} {value}" for name, value in words.evidence[:_FIGURES])
    event = name_of_event(verdict.events[0]) if verdict.events else None
    sure = f"Certainty {words.certainty}.{_often(times)}"
    return VerdictLine(words.code, words.where, words.headline, sure, None, event, words.action, figures)


def _often(times: int) -> str:
    """How often it was found, where that is more than once."""
    return f" Found {times:,} times; this is the gravest." if times > 1 else ""
