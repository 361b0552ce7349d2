"""All pages as their logic: what each says first, in each state, and where its links lead."""

from urllib.parse import parse_qs

import pytest
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL
from streamlit.testing.v1 import AppTest

from tests.dashboards.answers import BIG_ID, Json, attribution, engines, loss, no_spike, spikes, stream, verdict, window
from tests.dashboards.open_app import OpenPlace, app_of, link_of, said
from tests.dashboards.page_answers import latency, page_answers, prefetches, recorder, tenants, tiers

EVENT = f"engine-a/{BIG_ID}/0/3"


def links(page: AppTest) -> dict[str, dict[str, list[str]]]:
    """Where each link of a page leads, by its words."""
    return {_read(one.proto.label): parse_qs(one.proto.query_string) for one in page.get("page_link")}


def values(page: AppTest) -> dict[str, str]:
    """The figures in large, by their names."""
    return {str(one.label): str(one.value) for one in page.metric}


def test_now_says_how_it_is_what_is_wrong_and_what_holds_back(open_place: OpenPlace) -> None:
    """Figures, the verdict with the way to its spike, and actions in force stand on one page."""
    page, _ = open_place(Place.NOW, page_answers())
    text = said(page)

    assert values(page)["TTFT, P99"] == "35.0 ms"
    assert values(page)["Within objective"] == "97 %"
    assert ":red[:material/error:] `TIER_SLOW`" in text
    assert "2023-11-14 22:14:00 to 22:14:20 UTC (20.0 s)." in text
    assert "of all" not in text
    assert "says that it runs" not in text
    assert "Degrade action disable_nvme: applied since 11-14 22:13:20 UTC." in text
    assert links(page)["Explain this spike"]["start_ns"] == ["40000000000"]


def test_now_asks_for_the_newest_quarter_of_an_hour_unless_told_otherwise(open_place: OpenPlace) -> None:
    """The stretch of time moves with the data until the link holds it."""
    late = engines() | {"engines": [engines()["engines"][0] | {"last_ns": 2_000_000_000_000}]}
    default = open_place(Place.NOW, page_answers(engines=late))[1].params_of("/v1/latency")[0]
    held = open_place(Place.NOW, page_answers(), start_ns="5", end_ns="9", tenant="aa")[1].params_of("/v1/latency")[0]

    assert (default["start_ns"], default["end_ns"]) == ("1100000000000", "2000000000001")
    assert (held["start_ns"], held["end_ns"], held["tenant"]) == ("5", "9", "aa")


def test_the_objective_is_kept_in_the_link(open_place: OpenPlace) -> None:
    """What counts as good is part of the view."""
    page, script = open_place(Place.NOW, page_answers(), slo_ttft_ms="200")
    page.number_input(key="slo-tpot").set_value(40).run()

    assert link_of(page) == {"engine": "engine-a", "slo_ttft_ms": "200", "slo_tpot_ms": "40"}
    assert script.params_of("/v1/latency")[-1]["ttft_ms"] == "200"
    assert script.params_of("/v1/latency")[-1]["tpot_ms"] == "40"


def test_a_filter_goes_into_the_link_and_into_each_link_to_another_page(open_place: OpenPlace) -> None:
    """What a page is about survives the way to the next page."""
    page, script = open_place(Place.NOW, page_answers())
    page.selectbox(key="filter-tenant").select("aa").run()
    page.selectbox(key="filter-time").select(3_600).run()

    assert link_of(page) == {"engine": "engine-a", "tenant": "aa", "last_s": "3600"}
    assert links(page)["Tiers"] == {"engine": ["engine-a"], "tenant": ["aa"], "last_s": ["3600"]}
    assert script.params_of("/v1/latency")[-1]["tenant"] == "aa"


def test_the_time_that_is_shown_can_be_held(open_place: OpenPlace) -> None:
    """What moves with the data becomes a link that shows its reader the same time, whenever it is opened."""
    page, script = open_place(Place.NOW, page_answers(), last_s="60")
    page.selectbox(key="filter-time").select(-2).run()

    assert link_of(page) == {"engine": "engine-a", "start_ns": "40000000000", "end_ns": "100000000001"}
    assert script.params_of("/v1/latency")[-1] == script.params_of("/v1/latency")[0]


def test_a_choice_is_seen_and_what_it_does_not_narrow_says_so(open_place: OpenPlace) -> None:
    """A rank that is not there must not look like the whole engine, empty; nor the spike of all tenants like that of one."""
    page, script = open_place(Place.NOW, page_answers(), rank="7", tenant="aa")

    assert 7 == page.selectbox(key="filter-rank").value
    assert "7" == script.params_of("/v1/latency")[0]["rank"]
    assert "Slow stretches of time, and what rules find: of all ranks and tenants." in said(page)


def test_a_page_that_a_link_does_not_narrow_says_so(open_place: OpenPlace) -> None:
    """The way from a tenant's figures to a spike leads to a page of all tenants."""
    page, _ = open_place(Place.SPIKE, page_answers(), tenant="aa", rank="0")

    assert "The link names a rank and tenant: this page is of all ranks and tenants." in said(page)


def test_what_is_of_another_time_is_not_red_and_says_so(open_place: OpenPlace) -> None:
    """A spike of an hour ago is not what wakes somebody now; and an engine that went silent is told before its figures."""
    link = {"start_ns": "70000000000", "end_ns": "90000000000"}
    text = said(open_place(Place.NOW, page_answers(recorder=recorder(60)), **link)[0])

    assert ":gray[:material/history:] `TIER_SLOW`" in text
    assert "Earlier than the time shown: Reading from nvme got slower." in text
    assert "Rank 0 says that it runs, and is silent: its last sign of life came 60 s ago." in text


def test_more_kinds_than_there_is_room_for_are_counted(open_place: OpenPlace) -> None:
    """The sixth kind of finding is a click away, and the page says that it is there."""
    found = [verdict(f"A{place}", basis="invariant") for place in range(7)]
    given = {"verdicts": found, "window": window(0, 100), "coverage": 1.0}
    page, _ = open_place(Place.NOW, page_answers(verdicts=given, attribution=no_spike()))

    assert "2 more" in [one.label for one in page.expander]
    assert all(f"`A{place}`" in said(page) for place in range(7))


def test_an_empty_stretch_of_time_says_so(open_place: OpenPlace) -> None:
    """No chart is drawn from nothing."""
    empty = latency() | {"series": [], "total": {"requests": 0}}

    assert "No request arrived in this stretch of time." in said(open_place(Place.NOW, page_answers(latency=empty))[0])


def test_slow_stretches_are_told_though_none_stands_out(open_place: OpenPlace) -> None:
    """Of two spikes each hides the other from the search; whoever is woken must not read that all is well."""
    two = spikes((70, 80), (40, 60))
    page, _ = open_place(Place.NOW, page_answers(attribution=no_spike(), spikes=two), last_s="0")
    found = {told: query["start_ns"] for told, query in links(page).items() if "P95" in told}

    assert "Slow for a while" in said(page)
    assert [["70000000000"], ["40000000000"]] == list(found.values())


def test_a_spike_that_is_explained_is_not_told_twice(open_place: OpenPlace) -> None:
    """Only the others, and only those of the time that is shown, are listed beside it."""
    two = spikes((70, 80), (40, 60))
    page, _ = open_place(Place.NOW, page_answers(spikes=two), last_s="0")
    earlier, _ = open_place(Place.NOW, page_answers(spikes=two), start_ns="30000000000", end_ns="65000000000")

    assert "Also slow" in said(page)
    assert ["70000000000"] == [query["start_ns"][0] for told, query in links(page).items() if "P95" in told]
    assert not [told for told in links(earlier) if "P95" in told]


def test_findings_of_one_kind_are_one_line_with_figures_and_what_helps(open_place: OpenPlace) -> None:
    """A rule that fires for six sizes of prefix is one thing to do, not six lines to read."""
    wasted = verdict("PREFETCH_WASTE", basis="mechanism", evidence={"wasted_blocks": 3_480, "wasted_bytes": 57_016_320})
    given = {"verdicts": [wasted, wasted], "window": window(0, 100)}
    text = said(open_place(Place.NOW, page_answers(verdicts=given, attribution=no_spike()))[0])

    assert text.count("`PREFETCH_WASTE`") == 1
    assert "Wasted blocks 3,480, wasted 54 MiB." in text
    assert "What to do: Recompute instead of reading from this tier." in text
    assert "Found 2 times; this is the gravest." in text


def test_a_spike_leads_to_the_other_pages_of_its_time(open_place: OpenPlace) -> None:
    """Tier, queue and prefetch waste of the very seconds are a click away, though the link does not hold the window yet."""
    page, _ = open_place(Place.SPIKE, page_answers())

    assert {"40000000000"} == {links(page)[f"{name} then"]["start_ns"][0] for name in ("Tiers", "Prefetch", "Tenants")}


def test_a_broken_rule_leads_to_its_event_and_is_no_spike(open_place: OpenPlace) -> None:
    """What is no matter of a spike has no window to explain, but an event that shows it."""
    broken = verdict("READ_AFTER_INVALIDATE", basis="invariant", share=0.0, confidence=1.0)
    page, _ = open_place(
        Place.NOW, page_answers(verdicts={"verdicts": [broken], "window": window(0, 100)}, attribution=no_spike())
    )

    assert links(page)["See it happen"]["event"] == [f"engine-a/{BIG_ID}/0/12"]
    assert "Explain this spike" not in links(page)
    assert "Certainty 100 %." in said(page)


def test_a_spike_without_a_named_cause_is_told_all_the_same(open_place: OpenPlace) -> None:
    """That kvtrail does not know is not that nothing was; and rules are asked once, however often the page is drawn."""
    unnamed = attribution(verdicts=[], identified=False, why_not="not identifiable: more requests would help")
    page, script = open_place(Place.NOW, page_answers(attribution=unnamed))
    page.run()

    assert "Not identifiable: more requests would help." in said(page)
    assert links(page)["Explain this spike"]["start_ns"] == ["40000000000"]
    assert len(script.params_of("/v1/verdicts")) == 1


def test_a_large_store_is_asked_every_rule_only_when_somebody_wants_it(open_place: OpenPlace) -> None:
    """A page that stays open all night must not keep the collector busy; the spike's cause is told all the same."""
    page, script = open_place(Place.NOW, page_answers(loss=loss(stream(produced=3_000_000, stored=3_000_000))))
    before = len(script.params_of("/v1/verdicts"))
    page.toggle(key="ask-every-rule").set_value(True).run()

    assert "`TIER_SLOW`" in said(page)
    assert (before, len(script.params_of("/v1/verdicts"))) == (0, 1)


def test_figures_stand_also_where_verdicts_do_not_come(open_place: OpenPlace) -> None:
    """A collector that cannot judge in time takes its own place only."""
    given = {path: answer for path, answer in page_answers().items() if path not in {"/v1/verdicts", "/v1/attribution"}}
    page, _ = open_place(Place.NOW, given)

    assert values(page)["TTFT, P99"] == "35.0 ms"
    assert "No such thing is stored" in said(page)


def test_a_measure_that_nothing_has_is_no_chart(open_place: OpenPlace) -> None:
    """Requests of one token have no time per further token; the other chart stays."""
    rows = [row | {"figures": row["figures"] | {"tpot": {}}} for row in latency()["series"]]
    page, _ = open_place(Place.NOW, page_answers(latency=latency() | {"series": rows}))

    assert "No request of this stretch of time has one." in said(page)
    assert len(page.get("vega_lite_chart") or page.get("arrow_vega_lite_chart")) == 1


def test_the_way_from_now_to_the_event_takes_three_clicks(open_place: OpenPlace) -> None:
    """The spike on *Now*, the request on *Spike*, the event on *Request*: each is one link."""
    now, _ = open_place(Place.NOW, page_answers())
    spike, _ = open_place(Place.SPIKE, page_answers(), **_flat(links(now)["Explain this spike"]))
    request, _ = open_place(Place.REQUEST, page_answers(), **_flat(links(spike)["r-1"]))
    _pressed(request, "1. loaded from nvme [slow]")

    assert "Event: evicted" in said(request)
    assert link_of(request)["event"] == "engine-a/7/0/3"


def test_an_event_leads_to_its_cause_and_to_the_life_of_its_block(open_place: OpenPlace) -> None:
    """From one event the chain can be walked both ways."""
    page, _ = open_place(Place.REQUEST, page_answers(), event=EVENT)
    block = links(page)["Where the copies of its block were"]["block"]
    _pressed(page, "prefetch issued (seq 2)")
    cause = link_of(page)["event"]
    _pressed(page, "swap in queued (seq 9)")

    assert [str(BIG_ID)] == block
    assert (cause, link_of(page)["event"]) == (f"engine-a/{BIG_ID}/0/2", f"engine-a/{BIG_ID}/0/9")


@pytest.mark.parametrize("name", ["nonsense", "a/b/c/d", "a/1/2", f"a/{'9' * 30}/0/1"])
def test_a_link_to_what_is_no_event_is_told(open_place: OpenPlace, name: str) -> None:
    """A mangled link costs nothing but the event."""
    page, script = open_place(Place.REQUEST, page_answers(), event=name)

    assert "names no event" in said(page)
    assert not script.params_of("/v1/event")


def test_a_tier_at_which_many_wait_stands_out(open_place: OpenPlace) -> None:
    """The tile of that tier has the sign of something bad; the others do not."""
    page, _ = open_place(Place.TIERS, page_answers())
    text = said(page)

    assert values(page) == {"gpu": "60 % used", "nvme": "90 % used"}
    assert "Restoring was cheaper a token, 2.5 times in the median." in text
    assert [":red" in line for line in text.split("\n") if "pinned" in line] == [False, True]
    assert "most waiting and in flight: " in text


def test_a_tier_that_nobody_sampled_is_told(open_place: OpenPlace) -> None:
    """Transfers stay, where levels are absent."""
    blind = tiers() | {"levels": {"bucket_ms": 1_000, "now": [], "series": []}}
    page = open_place(Place.TIERS, page_answers(tiers=blind))[0]
    text = said(page)

    assert "No tier was sampled in this stretch of time." in text
    assert "Transfers" in text


def test_sizes_in_tables_are_in_the_unit_of_those_beside_them(open_place: OpenPlace) -> None:
    """MiB in the tiles and MiB in the tables: what a disk's maker calls a megabyte is another number."""
    table = open_place(Place.TIERS, page_answers())[0].dataframe[0]

    assert [4_096 / 2**20] == list(table.value["bytes"])
    assert "moved, MiB" in table.proto.columns


def test_prefetch_says_how_much_was_of_use_and_why_the_rest_was_not(open_place: OpenPlace) -> None:
    """Shares are of what ended; what was held back is told, too."""
    page, _ = open_place(Place.PREFETCH, page_answers())

    assert values(page)["Used"] == "56 %"
    assert values(page)["Wasted"] == "30 %"
    assert values(page)["Time hidden"] == "9.0 ms"
    assert "7 × byte cap" in said(page)
    assert "Search" in str(page.dataframe[0].value.to_dict())


def test_prefetch_that_is_off_is_no_empty_chart(open_place: OpenPlace) -> None:
    """Nothing fetched ahead is a sentence."""
    none = prefetches() | {"total": {"issued": 0}, "series": [], "losses": [], "not_issued": []}

    assert "Nothing was fetched ahead" in said(open_place(Place.PREFETCH, page_answers(**{"prefetch/flow": none}))[0])


@pytest.mark.parametrize(
    ("place", "path", "answer", "told"),
    [
        (Place.TENANTS, "tenants", tenants() | {"tenants_left_out": 3}, "3 more tenants are not listed"),
        (Place.PREFETCH, "prefetch/flow", prefetches() | {"losses_left_out": 4}, "4 more rows are not listed"),
        (Place.RECORDER, "recorder", recorder() | {"streams_left_out": 5}, "5 more streams are not listed"),
    ],
)
def test_a_list_that_was_cut_says_so(open_place: OpenPlace, place: Place, path: str, answer: Json, told: str) -> None:
    """What is not in a table is not taken for what is not there."""
    assert told in said(open_place(place, page_answers(**{path: answer}))[0])


def test_tenants_stand_under_their_names_with_what_they_hold(open_place: OpenPlace) -> None:
    """The operator's map names them; one without a declaration is said to be so."""
    page, _ = open_place(Place.TENANTS, page_answers())
    table = page.dataframe[0].value

    assert list(table["name"]) == ["Search", "not named"]
    assert "not listed" not in said(page)
    assert list(table["holds"]) == ["host 512 bytes of 1.0 KiB"] * 2
    assert "3 on nvme" in str(page.dataframe[1].value.to_dict())
    assert "2023-11-14 22:13:20" == str(page.dataframe[1].value["at"][0])[:19]
    assert "YYYY-MM-DD HH:mm:ss.SSS" in page.dataframe[1].proto.columns
    assert links(page)["Evidence of 11-14 22:13:20 UTC"]["event"] == [f"engine-a/{BIG_ID}/0/5"]


@pytest.mark.parametrize(("heard_s_ago", "told"), [(1, "no stream that runs is silent"), (60, "1 stream runs and is silent")])
def test_a_stream_that_runs_and_is_silent_is_told(open_place: OpenPlace, heard_s_ago: int, told: str) -> None:
    """A dead agent looks like a quiet engine until somebody looks at its heartbeat."""
    assert told in said(open_place(Place.RECORDER, page_answers(recorder=recorder(heard_s_ago)))[0])


def test_what_is_missing_is_told_by_number(open_place: OpenPlace) -> None:
    """An event that nobody explains is an alarm, with its place; what was dropped has its reason."""
    holed: Json = stream(stored=90, unaccounted=4, gaps=[[7, 10]], dropped=[{"stage": "ring", "reason": "full", "count": 6}])
    page, _ = open_place(Place.RECORDER, page_answers(loss=loss(holed)))

    assert "4 events were produced and are unaccounted for." in said(page)
    assert values(page)["Balance"] == "unbalanced"
    assert [list(table.value["events"]) for table in page.dataframe[1:]] == [[6], [4]]


@pytest.mark.parametrize("place", list(Place))
def test_a_collector_that_is_down_is_told_on_each_page(monkeypatch: pytest.MonkeyPatch, free_port: int, place: Place) -> None:
    """Every page stays a page, with its links, and says how to start a collector."""
    monkeypatch.setenv(COLLECTOR_URL, f"http://127.0.0.1:{free_port}")
    page = app_of(place).run()

    assert "kvtrail collector serve" in said(page)
    assert len(links(page)) == len(Place)


def _pressed(page: AppTest, label: str) -> None:
    """Press the button with these words."""
    next(one for one in page.button if _read(one.label) == label).click().run()


def _read(label: str) -> str:
    """A label as it is read: without the signs that make it plain text."""
    return label.replace("\\", "").replace("\u2060", "")


def _flat(query: dict[str, list[str]]) -> dict[str, str]:
    """A query with one value for each name."""
    return {name: several[0] for name, several in query.items()}
