"""The page in a real browser, over a real collector full of events: what a person sees, clicks and shares."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from kvtrail_dashboards.serve import address, command
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, VERSION, BatchHeader, StreamState, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.events import Event
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.collector.attribution.synthetic import Fault, Plan, simulate
from tests.real import require_real

pytestmark = pytest.mark.real("browser")

CHROMIUM: Final = os.environ.get("KVTRAIL_TEST_CHROMIUM", "/usr/bin/chromium")
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SERVE: Final = """
import sys
from kvtrail_collector.serve import serve
from kvtrail_collector.settings import Settings
serve(Settings(store=sys.argv[1], port=0), on_bound=lambda address: print(address.url, flush=True))
"""
ROWS_A_BATCH: Final = 20_000
START_S: Final = 60
SHOWN_MS: Final = 60_000


@dataclass(slots=True)
class Seen:
    """A page, and what it complained of or asked elsewhere."""

    page: Page
    console: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self, home: str) -> None:
        """Note errors, and requests to any place but the dashboard."""
        self.page.on("console", lambda line: self.console.append(line.text) if line.type in {"error", "warning"} else None)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda asked: self._note(asked.url, home))

    def _note(self, url: str, home: str) -> None:
        """Keep an address that is neither the dashboard's nor inline."""
        if urlsplit(url).netloc != urlsplit(home).netloc and not url.startswith(("data:", "blob:")):
            self.elsewhere.append(url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen."""
    require_real("browser", found=Path(CHROMIUM).is_file(), how=f"install chromium at {CHROMIUM} (apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A collector in a process of its own, with a run in which reads of nvme are slow for 20 s."""
    path = tmp_path_factory.mktemp("store") / "events.duckdb"
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            _fill(url, simulate(Plan(seed=1, fault=Fault.NVME_SLOW)).numbered())
            yield url
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def dashboard(collector: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard, started by the command that the project gives."""
    port = _free_port()
    log = tmp_path_factory.mktemp("log") / "streamlit.log"
    with log.open("wb") as output, _running(command(port, collector), output.fileno()):
        _wait_until_healthy(address(port), log)
        yield address(port)


@pytest.fixture
def seen(browser: Browser, dashboard: str) -> Iterator[Seen]:
    """A fresh page of a fresh browser profile, watched."""
    context = browser.new_context(viewport={"width": 1400, "height": 2400})
    found = Seen(context.new_page())
    found.watch(dashboard)
    yield found
    context.close()


def test_the_page_explains_the_spike_and_asks_nobody_else(seen: Seen, dashboard: str) -> None:
    """Verdict, charts and table are there; the console is clean; nothing leaves for another host."""
    seen.page.goto(dashboard)

    expect(seen.page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
    expect(seen.page.get_by_text("Reading from nvme got slower.")).to_be_visible()
    expect(seen.page.get_by_text("cpu-emulated")).to_be_visible()
    expect(seen.page.get_by_test_id("stVegaLiteChart")).to_have_count(2, timeout=SHOWN_MS)
    expect(seen.page.get_by_text("Slowest requests")).to_be_visible()
    seen.page.wait_for_load_state("networkidle")
    assert seen.console == []
    assert seen.elsewhere == []


def test_picking_a_request_shows_its_timeline_and_the_link_reproduces_it(seen: Seen, dashboard: str) -> None:
    """A click in the table is enough; the address in the bar, opened anew, shows the same request in the same spike."""
    seen.page.goto(dashboard)
    table = seen.page.get_by_test_id("stDataFrame").last
    expect(table).to_be_visible(timeout=SHOWN_MS)
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


def test_a_typed_id_is_shown(seen: Seen, dashboard: str) -> None:
    """An id from a log needs no place in the table."""
    seen.page.goto(dashboard)
    field = seen.page.get_by_role("combobox")
    expect(field).to_be_visible(timeout=SHOWN_MS)
    field.fill("r100")
    field.press("Enter")

    expect(seen.page.get_by_role("heading", name="Timeline of request r100", exact=True)).to_be_visible(timeout=SHOWN_MS)


def _click_first_row(page: Page) -> None:
    """Tick the first row's box; the table is drawn on a canvas, so it is found by place."""
    box = page.get_by_test_id("stDataFrame").last.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 35 + 18)


def _fill(url: str, events: Sequence[Event]) -> None:
    """Send a whole run, as its agent would have."""
    with httpx.Client(base_url=url, headers={"content-type": CONTENT_TYPE}, timeout=30) as client:
        for begin in range(0, len(events), ROWS_A_BATCH):
            part = events[begin : begin + ROWS_A_BATCH]
            client.post("/v1/events", content=_frame(part, events[-1])).raise_for_status()


def _frame(part: Sequence[Event], last: Event) -> bytes:
    """One batch of a stream that ended just now."""
    header = BatchHeader(
        version=VERSION,
        engine="demo",
        epoch=7,
        rank=0,
        first_seq=part[0].seq,
        last_seq=part[-1].seq,
        count=len(part),
        produced=last.seq,
        clocks=Clocks(monotonic_ns=last.t_ns, wall_ns=time.time_ns(), error_ns=1),
        state=StreamState.STOPPED,
        drops=(),
    )
    return encode_batch(header, table_of(part))


@contextmanager
def _running(words: Sequence[str], output: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block."""
    with subprocess.Popen(words, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.terminate()


def _wait_until_healthy(url: str, log: Path) -> None:
    """Return when the dashboard answers; fail with its log if it does not."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/_stcore/health", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"the dashboard did not start: {log.read_text()}")


def _free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
