"""The pages over a store that a real run filled, with a fault on purpose in it: minutes, so in the long suite only.

The run is the demo's, made once for all of these tests. `KVTRAIL_TEST_RECORDING` may name a folder of segments that the
recorder's file transport wrote in an earlier run in which reads of nvme were slow; then that one is looked at.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from kvtrail_agent.transports.file import read_segments
from kvtrail_dashboards.places import Place
from kvtrail_schema.batch import CONTENT_TYPE
from playwright.sync_api import Browser, Page, expect

from tests.dashboards.browser import Seen, Served, serving_collector, serving_dashboard
from tests.dashboards.hands import (
    SHOWN_MS,
    agreed,
    click,
    click_first_row,
    exemplar,
    heap_mb,
    refresh,
    rest,
    rss_mb,
    sweep,
    told,
)

pytestmark = [
    pytest.mark.real("browser"),
    pytest.mark.skipif(os.environ.get("KVTRAIL_LONG") != "1", reason="a real run and 200 refreshes: make test-long"),
    pytest.mark.timeout(1_800),
]

RECORDING: Final = os.environ.get("KVTRAIL_TEST_RECORDING", "")
SESSIONS: Final = 8
REFRESHES: Final = 200
SERVER_GROWTH_MB: Final = 60
BROWSER_GROWTH_MB: Final = 40
"""200 pages that are kept would be several times these."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard in front of a collector that holds the events of a real run."""
    logs = tmp_path_factory.mktemp("real")
    with tempfile.TemporaryDirectory(prefix="kvt-") as name:
        store = Path(name) / "demo" / "events.duckdb"
        if RECORDING:
            store = Path(name) / "events.duckdb"
        else:
            run(store.parent)
        with serving_collector(store) as url:
            if RECORDING:
                send(url, Path(RECORDING))
            with serving_dashboard(url, logs / "streamlit.log") as served:
                yield Served(*served)


@pytest.fixture
def seen(browser: Browser, real: Served) -> Iterator[Seen]:
    """A fresh page of a fresh browser profile, watched."""
    context = browser.new_context(viewport={"width": 1400, "height": 2400})
    found = Seen(context.new_page())
    found.watch(real.url)
    yield found
    context.close()


def run(folder: Path) -> None:
    """A minute and a half of the reference engine, whose nvme tier becomes slow for a while."""
    words = ("demo", "--headless", "--json", "--fault", "nvme-slow", "--seed", "11", "--dir", str(folder))
    subprocess.run([sys.executable, "-m", "kvtrail_cli.main", *words], check=True, capture_output=True)


def send(url: str, folder: Path) -> None:
    """The frames of a recording, as the recorder wrote them."""
    with httpx.Client(base_url=url, headers={"content-type": CONTENT_TYPE}, timeout=60, trust_env=False) as client:
        for frame in read_segments(folder):
            client.post("/v1/events", content=frame).raise_for_status()


def test_the_injected_cause_is_what_the_page_names(seen: Seen, real: Served) -> None:
    """Engine, recorder, collector and pages are the real ones; a disk that is slow for a while is what *Spike* says."""
    seen.page.goto(f"{real.url}/spike")

    expect(seen.page.get_by_text("TIER_SLOW", exact=True).first).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page.get_by_text("Reading from nvme got slower.")).to_be_visible()
    assert seen.console == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", list(Place))
def test_each_page_loads_in_light_and_in_dark(browser: Browser, real: Served, place: Place, scheme: str) -> None:
    """With everything that a real run has: no error on the page, none in the console, nothing asked elsewhere."""
    context = browser.new_context(
        viewport={"width": 1400, "height": 2400}, color_scheme="dark" if scheme == "dark" else "light"
    )
    found = Seen(context.new_page())
    found.watch(real.url)
    found.page.goto(f"{real.url}/{'' if place is Place.NOW else place.path}?last_s=0")

    expect(found.page.get_by_role("heading", name=place.question)).to_be_visible(timeout=SHOWN_MS)
    expect(found.page.get_by_text("last heard of")).to_be_visible(timeout=SHOWN_MS)
    rest(found.page)
    expect(found.page.get_by_text("What to do:").filter(has_text="Where:")).to_have_count(0)
    assert found.console == []
    assert found.elsewhere == []
    context.close()


def test_three_clicks_lead_to_an_event_and_the_link_reproduces_it(seen: Seen, browser: Browser, real: Served) -> None:
    """Whoever gets the link sees the same event of the same request in the same spike."""
    seen.page.goto(real.url + "?last_s=0")
    click(seen.page.get_by_role("link", name="Explain this spike").first)
    click(exemplar(seen.page))
    click(seen.page.get_by_role("button", name=re.compile(r"^1\. ")).first)
    heading = seen.page.get_by_role("heading", name="Event:")
    expect(heading).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)

    assert {"engine", "start_ns", "end_ns", "request", "event"} <= set(parse_qs(urlsplit(seen.page.url).query))
    assert told(seen.page) == told(opened(browser, seen.page.url))
    assert seen.console == []


def test_a_spike_and_a_request_that_were_picked_by_click_are_in_the_link(seen: Seen, browser: Browser, real: Served) -> None:
    """The chart and the table are canvases; what was clicked on them is a link all the same."""
    seen.page.goto(f"{real.url}/spike?start_ns=1&end_ns=2")
    expect(seen.page.get_by_role("button", name="Back to the costliest spike")).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)
    sweep(seen.page, lambda: "start_ns=1&" not in seen.page.url)
    rest(seen.page)
    click_first_row(seen.page)
    expect(seen.page.get_by_role("heading", name="Timeline of request")).to_be_visible(timeout=SHOWN_MS)
    rest(seen.page)

    assert told(seen.page) == told(opened(browser, seen.page.url))
    assert seen.console == []


def test_eight_readers_at_once_see_the_same(browser: Browser, real: Served) -> None:
    """Each session has a page of its own; none waits for ever, none sees an error."""
    contexts = [browser.new_context() for _ in range(SESSIONS)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.goto(f"{real.url}/spike", wait_until="commit")
    for page in pages:
        expect(page.get_by_text("TIER_SLOW", exact=True).first).to_be_visible(timeout=2 * SHOWN_MS)
        rest(page)
    texts = agreed(pages)

    assert [texts[0]] * SESSIONS == texts
    for context in contexts:
        context.close()


def test_two_hundred_refreshes_take_no_more_memory(seen: Seen, real: Served) -> None:
    """A page that stays open all night, in the server and in the browser; the first fifty warm up what is kept once."""
    seen.page.goto(f"{real.url}/?last_s=0")
    refresh(seen.page, REFRESHES // 4)
    server, browser = rss_mb(real.pid), heap_mb(seen.page)
    refresh(seen.page, REFRESHES - REFRESHES // 4)
    grown = rss_mb(real.pid) - server, heap_mb(seen.page) - browser
    sys.stderr.write(
        f"\ngrown by {grown[0]:.1f} MB in the server, from {server:.0f}, {grown[1]:.1f} in the browser, from {browser:.0f}\n"
    )

    assert grown[0] < SERVER_GROWTH_MB
    assert grown[1] < BROWSER_GROWTH_MB
    assert seen.console == []


def opened(browser: Browser, link: str) -> Page:
    """A link as somebody else opens it, in a profile of their own, at rest."""
    page = browser.new_context(viewport={"width": 1400, "height": 2400}).new_page()
    page.goto(link)
    expect(page.get_by_text("last heard of")).to_be_visible(timeout=SHOWN_MS)
    page.wait_for_timeout(2_000)
    rest(page)
    return page
