"""How it is now, in words: rates over all the time, spikes with their time, findings under names, good news with its limits."""

import msgspec
import pytest
from kvtrail_dashboards.answers import Attribution, Loss, Verdict, Window
from kvtrail_dashboards.asked import Asked, window_of
from kvtrail_dashboards.compute.findings import Stretch, nothing_found, rule_lines, spike_lines, stretch_of
from kvtrail_dashboards.compute.narrowed import not_narrowed, of_all
from kvtrail_dashboards.compute.notices import Level
from kvtrail_dashboards.compute.now import Mood, Objective, latency_views, tiles
from kvtrail_dashboards.compute.tenants import tenant_tiles
from kvtrail_dashboards.compute.wall import WallTime
from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import Deletion, EngineRow, Latency, Missing, TenantAccount, Tenants, Verdicts
from kvtrail_dashboards.places import Place

from tests.dashboards import answers
from tests.dashboards.page_answers import latency

SECOND = 1_000_000_000
ENGINE = EngineRow("engine-a", answers.WALL_OFFSET_NS, (0,), 0, 100 * SECOND)
WALL = WallTime(answers.WALL_OFFSET_NS)
NOBODY = Loss(balanced=True)
NAMES = {"aa": "search"}


def rate(asked: Asked, *starts_s: int, engine: EngineRow = ENGINE) -> str:
    """What the tile of requests says of ten requests in each of these seconds."""
    found = msgspec.convert(latency(*starts_s), Latency)
    return tiles(found, NOBODY, engine, asked, Objective())[3].detail.split(";")[0]


def of_a_spike(**changes: object) -> Attribution:
    """An answer on the spike between second 40 and 60."""
    return msgspec.convert(answers.attribution(**changes), Attribution)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Asked(), "0.2 a second"),
        (Asked(start_ns=50 * SECOND, end_ns=70 * SECOND), "1.0 a second"),
        (Asked(start_ns=-5_000 * SECOND, end_ns=5_000 * SECOND), "0.2 a second"),
    ],
)
def test_a_rate_is_of_the_whole_time_and_not_of_the_busy_seconds(asked: Asked, told: str) -> None:
    """Twenty requests in two bursts of a hundred seconds are no ten a second."""
    assert told == rate(asked, 55, 60)


def test_a_low_rate_is_not_told_as_none() -> None:
    """Ten requests in a quarter of an hour are few, and not nothing."""
    assert "0.011 a second" == rate(Asked(), 0, engine=EngineRow("engine-a", first_ns=0, last_ns=900 * SECOND))


@pytest.mark.parametrize(
    ("start_s", "end_s", "lies"),
    [
        (None, None, Stretch.WITHIN),
        (30, 50, Stretch.WITHIN),
        (59, 90, Stretch.WITHIN),
        (60, 90, Stretch.EARLIER),
        (0, 40, Stretch.LATER),
    ],
)
def test_a_spike_says_when_it_was(start_s: int | None, end_s: int | None, lies: Stretch) -> None:
    """It is searched for in all time: what lies outside the time that is shown must not pass for part of it."""
    bounds = (None if at is None else at * SECOND for at in (start_s, end_s))
    asked = Asked("engine-a", None, None, None, *bounds)
    named, unnamed = spike_lines(of_a_spike(), {}, WALL, asked), spike_lines(of_a_spike(verdicts=[]), {}, WALL, asked)

    assert [lies] * 2 == [line.stretch for line in (*named, *unnamed)]
    assert {"2023-11-14 22:14:00 to 22:14:20 UTC (20.0 s)"} == {line.when for line in (*named, *unnamed)}
    assert lies is stretch_of(Window(40 * SECOND, 60 * SECOND), asked)


def test_tenants_of_findings_have_their_names() -> None:
    """As on the page that explains: nobody knows a tenant by its hash at night."""
    blamed = {"blamed_kind": "demand", "blamed_share": 0.5, "blamed_tenant": "aa"}
    one = answers.verdict("TIER_QUEUE", tenant="aa", evidence=blamed)
    (spike,) = spike_lines(of_a_spike(verdicts=[one]), NAMES, WALL, Asked())
    (rule,) = rule_lines((msgspec.convert(one | {"basis": "mechanism"}, Verdict),), NAMES)

    assert "nvme · tenant search" == spike.where == rule.where
    assert "blamed tenant search" in rule.figures


SEEN = Window(0, SECOND, 600)
BLIND = (Missing("waits look like computing", "copy_waited"),) * 9


@pytest.mark.parametrize(
    ("verdicts", "level", "words"),
    [
        (Verdicts(1.0, SEEN), Level.GOOD, "Every rule was asked"),
        (Verdicts(1.0, SEEN, missing=BLIND), Level.GOOD, "9 kinds of event never came"),
        (Verdicts(0.2, SEEN, missing=BLIND), Level.NOTE, "20 % are stored"),
        (Verdicts(None, SEEN), Level.NOTE, "not known are stored"),
        (Verdicts(1.0, Window(0, SECOND)), Level.NOTE, "No request arrived"),
        (Verdicts(1.0), Level.NOTE, "No request arrived"),
    ],
)
def test_good_news_claims_no_more_than_was_seen(verdicts: Verdicts, level: Level, words: str) -> None:
    """Green is only what was looked at and is well; where a part was not seen, that stands beside it."""
    notice = nothing_found(verdicts)

    assert level is notice.level
    assert words in f"{notice.what} {notice.do}"
    assert ("Every rule" in notice.what) == (verdicts == Verdicts(1.0, SEEN))


def test_a_spike_that_began_before_the_chart_says_when() -> None:
    """Its mark is cut where the chart begins, and its name is not; one that lies within has its name alone."""
    shown = msgspec.convert(latency(*range(50, 70)), Latency)
    cut, whole = (latency_views(shown, ENGINE, Window(at * SECOND, 60 * SECOND))[0].bands[0] for at in (40, 52))

    assert ("spike", "spike, since 11-14 22:14:00") == (cut.name, cut.told)
    assert ("spike", "") == (whole.name, whole.told)


def test_all_time_can_be_held_too() -> None:
    """Without bounds the held time is all that is known; of an engine of which nothing is, nothing can be held."""
    assert (0, 100 * SECOND + 1) == window_of(View(last_s=0), ENGINE)
    assert window_of(View(last_s=0), EngineRow("engine-a")) is None


def test_what_is_not_narrowed_is_named() -> None:
    """Only what a link chooses, and the page does not follow."""
    view = View(tenant="aa", rank=0)

    assert "of all tenants" == of_all(view, "tenant", "model")
    assert "" == not_narrowed(Place.NOW, view)
    assert "The link names a tenant: this page is of all tenants." == not_narrowed(Place.RECORDER, view)
    assert "" == not_narrowed(Place.SPIKE, View())


@pytest.mark.parametrize(
    ("tenants", "value", "mood"),
    [
        (Tenants(), "not known", Mood.PLAIN),
        (Tenants((TenantAccount("aa", 3),)), "not known", Mood.PLAIN),
        (Tenants((TenantAccount("aa", 3),), has_lookups=True), "0", Mood.GOOD),
        (Tenants((TenantAccount("aa", 3, foreign_misses=2),), has_lookups=True), "2", Mood.FAIR),
    ],
    ids=["nobody", "no lookup", "no miss", "misses"],
)
def test_borders_that_nobody_came_to_are_not_green(tenants: Tenants, value: str, mood: Mood) -> None:
    """That no lookup met a block of others says something only where there were lookups."""
    tile = tenant_tiles(tenants)[1]

    assert ("Kept from foreign blocks", value, mood) == (tile.label, tile.value, tile.mood)


@pytest.mark.parametrize(("count", "told"), [(99, "99"), (100, "100 or more")])
def test_a_list_of_deletions_that_is_cut_says_so(count: int, told: str) -> None:
    """The collector tells the newest hundred: a hundred may be more."""
    deletions = tuple(Deletion("e", 1, 0, seq, 0) for seq in range(count))

    assert told == tenant_tiles(Tenants(deletions=deletions))[-1].value
