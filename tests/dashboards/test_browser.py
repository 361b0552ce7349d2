"""The pages in a real browser, over a real collector full of events: what a person sees, clicks and shares."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from kvtrail_dashboards.places import Place
from playwright.sync_api import Browser, expect

from tests.dashboards.browser import Seen, Served, fill, serving_collector, serving_dashboard, slow_run
from tests.dashboards.hands import (
    SHOWN_MS,
    agreed,
    click,
    click_first_row,
    draw_over,
    exemplar,
    refresh,
    rest,
    sweep,
    type_choice,
)

pytestmark = pytest.mark.real("browser")

SESSIONS: Final = 3
REFRESHES: Final = 4


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard in front of a collector that holds a run in which reads of nvme are slow for 20 s."""
    folder = tmp_path_factory.mktemp("pages")
    with serving_collector(folder / "events.duckdb") as url:
        fill(url, slow_run())
        with serving_dashboard(url, folder / "streamlit.log") as served:
            yield Served(*served)


@pytest.fixture
def seen(browser: Browser, dashboard: Served) -> Iterator[Seen]:
    """A fresh page of a fresh browser profile, watched."""
    context = browser.new_context(viewport={"width": 1400, "height": 2400})
    found = Seen(context.new_page())
    found.watch(dashboard.url)
    yield found
    context.close()


def test_the_page_explains_the_spike_and_asks_nobody_else(seen: Seen, dashboard: Served) -> None:
    """Verdict, charts and table are there; the console is clean; nothing leaves for another host."""
    seen.page.goto(f"{dashboard.url}/spike")

    expect(seen.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page.get_by_text("Reading from nvme got slower.")).to_be_visible()
    expect(seen.page.get_by_text("cpu-emulated")).to_be_visible()
    expect(seen.page.get_by_test_id("stVegaLiteChart")).to_have_count(2, timeout=SHOWN_MS)
    expect(seen.page.get_by_text("Slowest requests")).to_be_visible()
    seen.page.wait_for_load_state("networkidle")
    assert seen.console == []
    assert seen.elsewhere == []


def test_each_page_loads_by_its_link_and_the_console_stays_clean(seen: Seen, dashboard: Served) -> None:
    """From one page the row of links leads to all others; each asks its question, and none shows an error."""
    seen.page.goto(dashboard.url)
    for place in Place:
        seen.page.get_by_role("link", name=place.title, exact=True).click()
        expect(seen.page.get_by_role("heading", name=place.question)).to_be_visible(timeout=SHOWN_MS)
        expect(seen.page.get_by_text("engine demo")).to_be_visible(timeout=SHOWN_MS)
        rest(seen.page)
        expect(seen.page.get_by_text("What to do:").filter(has_text="Where:")).to_have_count(0)

    assert seen.console == []
    assert seen.elsewhere == []


def test_three_clicks_lead_from_now_to_the_event_that_caused_it(seen: Seen, dashboard: Served) -> None:
    """The spike, a request that shows it, and in its chain the eviction because of which it had to read from nvme."""
    seen.page.goto(dashboard.url)
    click(seen.page.get_by_role("link", name="Explain this spike").first)
    click(exemplar(seen.page))
    click(seen.page.get_by_role("button", name="evicted").first)

    expect(seen.page.get_by_role("heading", name="Event: evicted")).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page).to_have_url(re.compile("event="))
    assert {"engine", "start_ns", "end_ns", "request", "event"} <= set(parse_qs(urlsplit(seen.page.url).query))
    assert seen.console == []


def test_a_spike_is_picked_by_click_by_keyboard_or_drawn_over(seen: Seen, dashboard: Served) -> None:
    """Three ways to the same question; each time the link holds what was picked."""
    seen.page.goto(f"{dashboard.url}/spike?start_ns=1&end_ns=5000000000")
    expect(seen.page.get_by_role("button", name="Back to the costliest spike")).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)
    sweep(seen.page, lambda: "start_ns=1&" not in seen.page.url)
    expect(seen.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)
    clicked = seen.page.url
    type_choice(seen.page, "Spike to explain", "costliest")
    expect(seen.page).not_to_have_url(re.compile("start_ns="), timeout=SHOWN_MS)
    rest(seen.page)
    type_choice(seen.page, "Spike to explain", "UTC")
    expect(seen.page).to_have_url(clicked, timeout=SHOWN_MS)
    rest(seen.page)
    draw_over(seen.page, 0.2, 0.4)
    click(seen.page.get_by_role("button", name=re.compile(r"^Explain \d\d-\d\d \d\d:\d\d:\d\d to")))

    expect(seen.page).not_to_have_url(clicked, timeout=SHOWN_MS)
    expect(seen.page).to_have_url(re.compile("start_ns="))
    assert seen.console == []


def test_picking_a_request_shows_its_timeline_and_the_link_reproduces_it(seen: Seen, dashboard: Served) -> None:
    """A click in the table is enough; the address in the bar, opened anew, shows the same request in the same spike."""
    seen.page.goto(f"{dashboard.url}/spike")
    table = seen.page.get_by_test_id("stDataFrame").last
    expect(table).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)
    table.scroll_into_view_if_needed()
    click_first_row(seen.page)
    heading = seen.page.get_by_role("heading", name="Timeline of request")
    expect(heading).to_be_visible(timeout=SHOWN_MS)
    told, link = heading.inner_text(), seen.page.url
    seen.page.goto("about:blank")
    seen.page.goto(link)

    expect(seen.page.get_by_role("heading", name=told)).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible()
    assert {"engine", "start_ns", "end_ns", "request"} == set(parse_qs(urlsplit(link).query))
    assert seen.console == []


def test_a_typed_id_is_shown(seen: Seen, dashboard: Served) -> None:
    """An id from a log needs no place in the table."""
    seen.page.goto(f"{dashboard.url}/request")
    field = seen.page.get_by_test_id("stSelectbox").filter(has_text="Show the timeline of").get_by_role("combobox")
    expect(field).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)
    field.fill("r100")
    field.press("Enter")

    expect(seen.page.get_by_role("heading", name="Timeline of request r100", exact=True)).to_be_visible(timeout=SHOWN_MS)


def test_many_readers_at_once_see_the_same(browser: Browser, dashboard: Served) -> None:
    """Each session has a page of its own; none waits for ever, none sees an error."""
    contexts = [browser.new_context() for _ in range(SESSIONS)]
    readers = [Seen(context.new_page()) for context in contexts]
    for reader in readers:
        reader.watch(dashboard.url)
        reader.page.goto(f"{dashboard.url}/spike", wait_until="commit")
    for reader in readers:
        expect(reader.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
        rest(reader.page)
    texts = agreed([reader.page for reader in readers])

    assert [texts[0]] * SESSIONS == texts
    assert [[]] * SESSIONS == [reader.console for reader in readers]
    for context in contexts:
        context.close()


def test_a_page_may_be_refreshed_again_and_again(seen: Seen, dashboard: Served) -> None:
    """It is drawn anew without a complaint. What that takes of memory, only the long form's 200 rounds can tell."""
    seen.page.goto(dashboard.url)
    refresh(seen.page, REFRESHES)

    expect(seen.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
    assert seen.console == []
