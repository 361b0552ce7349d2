"""The page *Spike* as its logic: what is said in each state, and how choices become links. A fake collector answers."""

import re
from datetime import timedelta
from functools import partial

import pytest
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL

from tests.dashboards import answers
from tests.dashboards.answers import BIG_ID, all_answers
from tests.dashboards.open_app import Open, OpenPlace, app_of, button, link_of, said, texts

SPIKE = {"start_ns": "40000000000", "end_ns": "60000000000"}
PICKED = f"7:0:{BIG_ID}"


@pytest.fixture
def open_page(open_place: OpenPlace) -> Open:
    """Opens the page with a link, over a collector that gives these answers."""
    return partial(open_place, Place.SPIKE)


def test_a_spike_is_told_with_code_certainty_action_and_figures(open_page: Open) -> None:
    """What somebody at 3 a.m. needs stands on top: what happened, why, how sure, what to do."""
    page, _ = open_page(all_answers())
    text = said(page)

    assert "`TIER_SLOW`" in text
    assert "Reading from nvme got slower." in text
    assert "Recompute instead of reading from this tier." in text
    assert [metric.value for metric in page.metric] == ["87 %", "99.8 %"]
    assert "cpu-emulated" in text


def test_a_healthy_run_says_so_and_still_shows_its_latency(open_page: Open) -> None:
    """No spike is no blank page: the chart and the slowest requests stay."""
    page, script = open_page(all_answers(attribution=answers.no_spike(), spikes=answers.spikes() | {"spikes": []}))
    text = said(page)

    assert "No spike: no stretch of time is slower than chance makes one." in text
    assert "Slowest requests" in text
    assert script.params_of("/v1/requests") == [{"engine": "engine-a", "order": "ttft", "limit": "50"}]


def test_choosing_a_request_shows_its_timeline_and_makes_a_link(open_page: Open) -> None:
    """The link holds engine, window and request: whoever opens it sees this request in this spike."""
    page, script = open_page(all_answers())
    page.selectbox(key="request-choice").select(PICKED).run()

    assert {"engine": "engine-a", "request": PICKED, **SPIKE} == link_of(page)
    assert "Timeline of request r-0" in said(page)
    assert "Time to first token: 300 ms; the engine estimated 34.0 ms for recomputing instead." in said(page)
    assert f"/v1/requests/{PICKED}" in [asked.path for asked in script.asked]


def test_a_link_reproduces_its_view(open_page: Open) -> None:
    """Opened anew, the page asks for the window and the request of the link."""
    page, script = open_page(all_answers(), engine="engine-a", start_ns="5", end_ns="9", request="r-2")

    assert script.params_of("/v1/attribution")[0] == {"engine": "engine-a", "start_ns": "5", "end_ns": "9"}
    assert f"7:0:{BIG_ID - 2}" == page.selectbox(key="request-choice").value
    assert "Timeline of request" in said(page)


def test_any_id_can_be_asked_for(open_page: Open) -> None:
    """An id from a log, which is not among the slowest, is shown, too."""
    page, script = open_page(all_answers(), request="from-a-log")

    assert page.selectbox(key="request-choice").value == "from-a-log"
    assert "/v1/requests/from-a-log" in [asked.path for asked in script.asked]


def test_an_unknown_request_is_told_and_leaves_the_page(open_page: Open) -> None:
    """A mistyped id costs nothing but its own timeline."""
    given = {path: answer for path, answer in all_answers().items() if path != "/v1/requests/"}
    page, _ = open_page(given, request="no-such")
    text = said(page)

    assert "No such thing is stored" in text
    assert "`TIER_SLOW`" in text


def test_the_window_can_be_kept_and_left_again(open_page: Open) -> None:
    """A searched window moves with the data until it is kept in the link."""
    page, script = open_page(all_answers())
    button(page, "Keep this window in the link").click().run()
    kept = link_of(page)
    button(page, "Back to the costliest spike").click().run()

    assert kept == {"engine": "engine-a", **SPIKE}
    assert link_of(page) == {"engine": "engine-a"}
    assert ["start_ns" in params for params in script.params_of("/v1/attribution")] == [False, True]


def test_a_spike_is_picked_from_the_list_of_all(open_page: Open) -> None:
    """By keyboard as by mouse: the link holds the one that was picked, and leaves what belonged to the one before."""
    given = all_answers(spikes=answers.spikes((70, 80), (40, 60)))
    page, script = open_page(given, request="r-1", event="engine-a/7/0/3")
    page.selectbox(key="spike-choice").select_index(1).run()
    picked = link_of(page)
    page.selectbox(key="spike-choice").select_index(0).run()

    assert picked == {"engine": "engine-a", "start_ns": "70000000000", "end_ns": "80000000000"}
    assert link_of(page) == {"engine": "engine-a"}
    assert [params.get("start_ns") for params in script.params_of("/v1/attribution")] == [None, "70000000000"]


def test_the_list_says_which_spike_a_link_is_about(open_page: Open) -> None:
    """A window that covers most of a spike is that spike; any other is another stretch of time."""
    given = all_answers(spikes=answers.spikes((70, 80), (40, 60)))
    spike = open_page(given, start_ns="41000000000", end_ns="60000000000")[0].selectbox(key="spike-choice")
    other = open_page(given, start_ns="1", end_ns="9")[0].selectbox(key="spike-choice")

    assert spike.format_func(spike.value).endswith("22:14:00 to 22:14:20 UTC (20 s): P95 150 ms, else 30.0 ms")
    assert other.format_func(other.value) == "another stretch of time, which the link holds"


def test_several_slow_stretches_of_which_none_stands_out_are_no_good_news(open_page: Open) -> None:
    """Each may hide the others from the search; the page says so, and offers them."""
    page, _ = open_page(all_answers(attribution=answers.no_spike(), spikes=answers.spikes((70, 80), (40, 60))))

    assert "2 stretches of time were slow, though none stands out" in said(page)
    assert not page.success


def test_what_an_explanation_stands_on_is_there_for_whoever_doubts_it(open_page: Open) -> None:
    """Windows, quantile, what was left out, and the command that asks the same."""
    noted = answers.attribution(notes=["the reference had a spell of 9 s in it, which was left out"])
    text = said(open_page(all_answers(attribution=noted))[0])

    assert "Compared with: 2023-11-14 22:13:30 to 22:14:00 UTC (30.0 s), 1,000 requests, events cover 100 % of it." in text
    assert "the slowest 5 % of both (from P95 on)" in text
    assert "The reference had a spell of 9 s in it, which was left out." in text
    assert "kvtrail attribute --engine engine-a --start-ns 40000000000 --end-ns 60000000000" in text


def test_a_collector_that_cannot_list_spikes_costs_nothing_but_the_list(open_page: Open) -> None:
    """An older collector still explains."""
    page, _ = open_page({path: answer for path, answer in all_answers().items() if path != "/v1/spikes"})

    assert "`TIER_SLOW`" in said(page)


def test_another_stretch_can_be_explained(open_page: Open) -> None:
    """Two ends on the time axis become the window of the question, on the engine's clock."""
    page, script = open_page(all_answers())
    slider = page.slider(key="stretch")
    start, end = slider.value
    page = slider.set_range(start - timedelta(seconds=40), end).run()
    button(page, "Explain it").click().run()

    assert script.params_of("/v1/attribution")[-1] == {"engine": "engine-a", "start_ns": "0", "end_ns": "60000000000"}


def test_one_of_several_engines_is_chosen(open_page: Open) -> None:
    """Another engine is another story: its window is searched, the old request is forgotten; what counts as good stays."""
    two = all_answers(engines=answers.engines("engine-a", "engine-b"))
    page, script = open_page(two, request="r-1", slo_ttft_ms="200", live="1", **SPIKE)
    page.selectbox(key="filter-engine").select("engine-b").run()

    assert link_of(page) == {"engine": "engine-b", "slo_ttft_ms": "200", "live": "1"}
    assert script.params_of("/v1/attribution")[-1] == {"engine": "engine-b"}


def test_a_link_to_an_engine_that_is_not_there_is_told(open_page: Open) -> None:
    """A link from another collector names its engine, and the page says which ones there are."""
    page, script = open_page(all_answers(), engine="engine-z")

    assert "no engine engine-z" in said(page)
    assert "known are: engine-a" in said(page)
    assert [asked.path for asked in script.asked] == ["/v1/engines"]


@pytest.mark.parametrize("verdicts", [2, 3])
def test_several_verdicts_stand_in_their_order(open_page: Open, verdicts: int) -> None:
    """The collector orders them; the page keeps the order."""
    codes = ["TIER_SLOW", "SCHED_QUEUE", "A_NEW_CODE"][:verdicts]
    given = answers.attribution(verdicts=[answers.verdict(code) for code in codes])
    text = said(open_page(all_answers(attribution=given))[0])

    assert sorted(text.index(f"`{code}`") for code in codes) == [text.index(f"`{code}`") for code in codes]


def test_a_cause_that_is_not_identified_is_told_as_such(open_page: Open) -> None:
    """Doubt is shown as doubt, with what would help, and the components stay visible."""
    why_not = "not identifiable: the excess may be chance; more requests or a longer reference would help"
    given = answers.attribution(verdicts=[], identified=False, why_not=why_not)
    text = said(open_page(all_answers(attribution=given))[0])

    assert "more requests or a longer reference would help" in text
    assert "What the slow requests had more of" in text


def test_losses_and_holes_stand_above_the_verdict(open_page: Open) -> None:
    """Whoever reads the verdict has read before what it may lack."""
    loss = answers.loss(answers.stream(unaccounted=5))
    partial = answers.attribution(window=answers.window(40, 60, coverage=0.75))
    page, _ = open_page(all_answers(loss=loss, attribution=partial))

    assert ["5 events" in str(page.error[0].value), "75 %" in str(page.warning[0].value)] == [True, True]


def test_an_empty_collector_says_how_to_begin(open_page: Open) -> None:
    """Before the first event nothing is asked that has no answer."""
    page, script = open_page(all_answers(engines=answers.engines() | {"engines": []}))

    assert "No events have reached this collector yet." in said(page)
    assert [asked.path for asked in script.asked] == ["/v1/engines"]


def test_a_collector_without_requests_says_so(open_page: Open) -> None:
    """An agent that only beats its heart is not an empty chart."""
    nothing = answers.series() | {"series": []}

    assert "no request has arrived yet" in said(open_page(all_answers(series=nothing))[0])


def test_an_empty_window_says_so(open_page: Open) -> None:
    """A link to a window of which nothing is left is a sentence."""
    page, _ = open_page(all_answers(requests=answers.requests(0)), start_ns="5", end_ns="9")

    assert "No request arrived in this window." in said(page)


def test_a_collector_that_is_down_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    """The page stays a page: where was asked, how to start a collector, and a button to ask again."""
    monkeypatch.setenv(COLLECTOR_URL, f"http://127.0.0.1:{free_port}")
    page = app_of(Place.SPIKE).run()

    assert "kvtrail collector serve" in said(page)
    assert str(free_port) in said(page)
    assert [button.label for button in page.button] == ["Refresh"]


def test_bad_settings_are_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address is a sentence that names the variable."""
    monkeypatch.setenv(COLLECTOR_URL, "nonsense")

    assert COLLECTOR_URL in said(app_of(Place.SPIKE).run())


def test_refresh_asks_anew(open_page: Open) -> None:
    """Reruns share answers for some seconds; the button does not wait for that."""
    page, script = open_page(all_answers())
    page.run()
    before = len(script.params_of("/v1/attribution"))
    button(page, "Refresh").click().run()

    assert (before, len(script.params_of("/v1/attribution"))) == (1, 2)


def test_names_from_events_are_text(open_page: Open) -> None:
    """Whoever names a request or tenant cannot write on the page of who reads it: what they wrote is shown, as text."""
    places = ("tenant", "action", "name", "chain")
    tenant, action, name, chain = (f"![{place}](http://evil.example/x.png) <script>{place}" for place in places)
    given = answers.attribution(verdicts=[answers.verdict(tenant=tenant, action=action)])
    why = answers.why() | {"request": name, "chain": [{"event": None, "text": chain}]}
    page, _ = open_page({**all_answers(attribution=given), "/v1/requests/": why}, request=PICKED)
    shown = "\n".join(texts(page, "markdown", "subheader", "caption"))

    assert not page.exception
    assert [] == [place for place in places if rf"\!\[{place}\]\(http" not in shown or rf"\<script\>{place}" not in shown]
    assert [] == re.findall(r"(?<!\\)(?:!\[|<script)", shown)
