"""The pages in a real browser, over a real collector full of events: what a person sees, clicks and shares."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from kvtrail_dashboards.places import Place
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.dashboards.browser import CHROMIUM, FLAGS, Seen, fill, serving_collector, serving_dashboard, slow_run
from tests.real import require_real

pytestmark = pytest.mark.real("browser")

SHOWN_MS: Final = 30_000
LONG: Final = os.environ.get("KVTRAIL_LONG") == "1"
SESSIONS: Final = 8 if LONG else 3
REFRESHES: Final = 200 if LONG else 8
GROWTH_MB: Final = 60
"""What the allocator may keep of pages that are gone; 200 of them without a bound would be several times that."""


class Served(NamedTuple):
    """Where the dashboard is, and its process."""

    url: str
    pid: int


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen."""
    require_real("browser", found=Path(CHROMIUM).is_file(), how=f"install chromium at {CHROMIUM} (apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


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
        _rest(seen.page)
        expect(seen.page.get_by_text("What to do:").filter(has_text="Where:")).to_have_count(0)

    assert seen.console == []
    assert seen.elsewhere == []


def test_three_clicks_lead_from_now_to_the_event_that_caused_it(seen: Seen, dashboard: Served) -> None:
    """The spike, a request that shows it, and in its chain the eviction because of which it had to read from nvme."""
    seen.page.goto(dashboard.url)
    _click(seen.page.get_by_role("link", name="Explain this spike").first)
    _click(_exemplar(seen.page))
    _click(seen.page.get_by_role("button", name="evicted").first)

    expect(seen.page.get_by_role("heading", name="Event: evicted")).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page).to_have_url(re.compile("event="))
    assert {"engine", "start_ns", "end_ns", "request", "event"} <= set(parse_qs(urlsplit(seen.page.url).query))
    assert seen.console == []


def test_picking_a_request_shows_its_timeline_and_the_link_reproduces_it(seen: Seen, dashboard: Served) -> None:
    """A click in the table is enough; the address in the bar, opened anew, shows the same request in the same spike."""
    seen.page.goto(f"{dashboard.url}/spike")
    table = seen.page.get_by_test_id("stDataFrame").last
    expect(table).to_be_visible(timeout=SHOWN_MS)
    _rest(seen.page)
    table.scroll_into_view_if_needed()
    _click_first_row(seen.page)
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
    _rest(seen.page)
    field.fill("r100")
    field.press("Enter")

    expect(seen.page.get_by_role("heading", name="Timeline of request r100", exact=True)).to_be_visible(timeout=SHOWN_MS)


@pytest.mark.timeout(600)
def test_many_readers_at_once_see_the_same(browser: Browser, dashboard: Served) -> None:
    """Each session has a page of its own; none waits for ever, none sees an error."""
    contexts = [browser.new_context() for _ in range(SESSIONS)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.goto(f"{dashboard.url}/spike", wait_until="commit")

    for page in pages:
        expect(page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
    for context in contexts:
        context.close()


@pytest.mark.timeout(1_800)
def test_refreshing_takes_no_more_memory_each_time(seen: Seen, dashboard: Served) -> None:
    """A page that stays open all night is drawn again and again; the first rounds warm up what is kept once."""
    seen.page.goto(dashboard.url)
    _refresh(seen.page, REFRESHES // 4)
    before_mb = _rss_mb(dashboard.pid)
    _refresh(seen.page, REFRESHES - REFRESHES // 4)

    assert _rss_mb(dashboard.pid) - before_mb < GROWTH_MB
    assert seen.console == []


@pytest.mark.skipif(not LONG, reason="a real run of a minute and a half: make test-long")
@pytest.mark.timeout(600)
def test_the_cause_that_was_injected_into_a_real_run_is_what_the_page_names(browser: Browser, private_dir: Path) -> None:
    """Engine, recorder, collector and pages are the real ones; a disk that is slow for a while is what *Spike* says."""
    words = ("demo", "--headless", "--json", "--fault", "nvme-slow", "--seed", "11", "--dir", str(private_dir / "demo"))
    subprocess.run([sys.executable, "-m", "kvtrail_cli.main", *words], check=True, capture_output=True)
    with (
        serving_collector(private_dir / "demo" / "events.duckdb") as url,
        serving_dashboard(url, private_dir / "streamlit.log") as (home, _),
    ):
        page = browser.new_page()
        page.goto(f"{home}/spike")

        expect(page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
        expect(page.get_by_text("Reading from nvme got slower.")).to_be_visible()
        page.close()


def _refresh(page: Page, times: int) -> None:
    """Press the button, and wait each time until the page has come to rest."""
    for _ in range(times):
        expect(page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
        page.get_by_role("button", name="Refresh").click()
        _rest(page)


def _rest(page: Page) -> None:
    """Wait until no script of the page runs."""
    page.wait_for_timeout(300)
    expect(page.locator("[data-testid='stApp'][data-test-script-state='running']")).to_have_count(0, timeout=SHOWN_MS)


def _click(link: Locator) -> None:
    """One click on what may take a moment to appear."""
    expect(link).to_be_visible(timeout=SHOWN_MS)
    link.click()


def _exemplar(page: Page) -> Locator:
    """The first request beside the words that announce them."""
    expect(page.get_by_text("Requests that show it best")).to_be_visible(timeout=SHOWN_MS)
    return page.get_by_role("link").filter(has_text="r").and_(page.locator("a[href*='request=']")).first


def _click_first_row(page: Page) -> None:
    """Tick the first row's box; the table is drawn on a canvas, so it is found by place."""
    box = page.get_by_test_id("stDataFrame").last.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 35 + 18)


def _rss_mb(pid: int) -> float:
    """Memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS:"))
