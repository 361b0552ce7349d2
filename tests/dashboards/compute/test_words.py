"""Words: what happened, how sure, what to do; and what is missing."""

import msgspec
import pytest
from kvtrail_dashboards.answers import Attribution, Figure, Loss, Series, Verdict
from kvtrail_dashboards.compute.figures import duration, evidence_lines, percent
from kvtrail_dashboards.compute.notices import Level, Notice, no_spike, not_identified, nothing_yet, notices
from kvtrail_dashboards.compute.verdict_words import what_happened, words_of
from kvtrail_dashboards.compute.wall import wall_time
from kvtrail_dashboards.sections.text import plain

from tests.dashboards import answers
from tests.dashboards.answers import Json


def spoken(code: str, evidence: dict[str, Figure], **changes: object) -> str:
    """Headline and detail of a verdict."""
    words = words_of(msgspec.convert(answers.verdict(code, evidence=evidence, **changes), Verdict))
    return f"{words.headline} {words.detail}".strip()


def attributed(**changes: object) -> Attribution:
    """An attribution in its type."""
    return msgspec.convert(answers.attribution(**changes), Attribution)


def balance(*streams: Json) -> Loss:
    """The balance of streams in its type."""
    return msgspec.convert(answers.loss(*streams), Loss)


def levels(found: tuple[Notice, ...]) -> list[Level]:
    """How much each notice weighs."""
    return [notice.level for notice in found]


def test_each_code_is_told_with_its_own_figures() -> None:
    """A person who does not know the codes reads what happened, and by how much."""
    queue: dict[str, Figure] = {"blamed_kind": "write_back", "blamed_share": 0.6, "blamed_tenant": "aa"}
    sched: dict[str, Figure] = {
        "taken_by": "r-9",
        "taker_prompt_tokens": 3_000,
        "long_prompt_tokens": 512,
        "long_prompts_share": 0.97,
    }

    slow = "Reading from nvme got slower. Each byte takes 7.1 times the device time that it took in the reference."
    assert slow == spoken("TIER_SLOW", {"read_cost_ratio": 7.1})
    assert "60 % of that waiting was behind write back work of tenant aa." in spoken("TIER_QUEUE", queue)
    long = "97 % of it went to prompts of more than 512 tokens. The largest taker is request r-9, a prompt of 3,000 tokens."
    assert spoken("SCHED_QUEUE", sched).endswith(long)


@pytest.mark.parametrize("code", ["TIER_SLOW", "TIER_QUEUE", "SCHED_QUEUE", "A_NEW_CODE"])
def test_no_figure_is_needed(code: str) -> None:
    """Evidence that is absent takes nothing from the headline; an unknown code is told by its component."""
    told = spoken(code, {})

    assert told.endswith(".")
    assert "None" not in told


def test_an_unknown_code_is_told_by_its_component() -> None:
    """A newer collector's verdict still says something."""
    assert spoken("A_NEW_CODE", {}, component="lookup", tier=None) == "More time goes to lookup."


def test_what_happened_is_one_sentence() -> None:
    """When, how many, how much slower than what."""
    told = what_happened(attributed(), wall_time(msgspec.convert(answers.series(), Series)))

    expected = (
        "2023-11-14 22:14:00 to 22:14:20 UTC (20.0 s), 600 requests: the slowest 5 % took 212 ms longer on average to "
        "their first token than in the 1,000 requests of the reference before it."
    )
    assert expected == told


@pytest.mark.parametrize(
    ("share", "told"), [(1.0, "100 %"), (0.9999, "99.9 %"), (0.995, "99.5 %"), (0.57, "57 %"), (0.004, "0.4 %"), (0, "0 %")]
)
def test_certainty_is_never_rounded_up_to_all(share: float, told: str) -> None:
    """100 % is said only of all."""
    assert told == percent(share)


def test_what_is_not_known_is_said_so() -> None:
    """No figure is made up."""
    assert percent(None) == "not known"


def test_evidence_has_units() -> None:
    """The unit at the end of a name becomes a unit beside the value."""
    lines = dict(
        evidence_lines({"waited_ns": 12_000_000, "reads": 200, "blamed_share": 0.6, "none": None, "read_bytes_per_s": 10.5})
    )

    assert lines == {"waited": "12.0 ms", "reads": "200", "blamed share": "60 %", "read": "10.5 bytes/s"}


TOLD = [
    (1234.5, "1,234 ms"),
    (12.34, "12.3 ms"),
    (0.25, "250 µs"),
    (2.4e6, "40.0 min"),
    (1.08e7, "3.0 h"),
    (-12.34, "-12.3 ms"),
]


@pytest.mark.parametrize(("ms", "told"), TOLD)
def test_durations_have_three_digits(ms: float, told: str) -> None:
    """No digits that mean nothing."""
    assert told == duration(ms)


def test_a_whole_and_covered_story_has_no_notice() -> None:
    """Calm when all is well."""
    assert notices(balance(answers.stream()), "engine-a", attributed()) == ()


def test_unaccounted_events_are_an_alarm_before_all_else() -> None:
    """Losses of another engine do not disturb this one's page."""
    found = notices(
        balance(
            answers.stream(unaccounted=5, dropped=[{"stage": "ring", "reason": "full", "count": 9}]),
            answers.stream("engine-b", unaccounted=70),
        ),
        "engine-a",
        attributed(window=answers.window(40, 60, coverage=0.75)),
    )

    assert levels(found) == [Level.ALARM, Level.WARNING, Level.WARNING]
    assert "5 events" in found[0].what
    assert found[1].what == "9 events were dropped on the way (ring full)."
    assert found[2].what == "Events cover only 75 % of the time of the window."
    assert all(notice.do for notice in found)


def test_an_empty_collector_says_how_to_fill_it() -> None:
    """No stream, and no request, are two things."""
    none, idle = nothing_yet(balance(), None), nothing_yet(balance(answers.stream()), Series(1_000))

    assert none is not None
    assert "No events" in none.what
    assert idle is not None
    assert "no request" in idle.what
    assert nothing_yet(balance(answers.stream()), msgspec.convert(answers.series(), Series)) is None


def test_no_spike_is_good_news() -> None:
    """It is told in the collector's words."""
    notice = no_spike(msgspec.convert(answers.no_spike(), Attribution))

    assert notice is not None
    assert Level.GOOD is notice.level
    assert notice.what == "No spike: no stretch of time is slower than chance makes one."
    assert no_spike(attributed()) is None


def test_a_cause_that_is_not_identifiable_is_said_so() -> None:
    """With what would help."""
    notice = not_identified(attributed(verdicts=[], identified=False, why_not="not identifiable: more requests would help"))

    assert notice is not None
    assert notice.what == "Not identifiable: more requests would help."
    assert not_identified(attributed()) is None


def test_text_from_elsewhere_stays_text() -> None:
    """Names in events become no links, images, icons or formulas; our own backticks stay code."""
    assert plain("[a](b) ![b] $c$ :red:") == r"\[a\]\(b\) \!\[b\] \$c\$ \:red\:"
    assert plain("a`b") == r"a\`b"
    assert plain("run `kvtrail_x loss`", code=True) == "run `kvtrail_x loss`"


@pytest.mark.parametrize("address", ["http://evil.example", "HTTPS://evil.example", "www.evil.example", "a@evil.example"])
def test_an_address_from_elsewhere_is_no_link(address: str) -> None:
    """Bare addresses would become links; something that nobody sees stands in between."""
    told = plain(address).replace("\\", "")

    assert address not in told
    assert address == told.replace("\u2060", "")
