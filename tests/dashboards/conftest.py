"""What the dashboard's tests share: a clean cache, no settings from outside, and warnings that are not ours."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL, READ_TOKEN_FILE
from playwright.sync_api import Browser, sync_playwright

from tests.dashboards.answers import Json
from tests.dashboards.browser import CHROMIUM, FLAGS
from tests.dashboards.fake_collector import fake_collector
from tests.dashboards.open_app import Opened, OpenPlace, app_of
from tests.real import require_real


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test says where its collector is, and asks anew."""
    monkeypatch.delenv(COLLECTOR_URL, raising=False)
    monkeypatch.delenv(READ_TOKEN_FILE, raising=False)
    forget()
    yield
    forget()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen."""
    require_real("browser", found=Path(CHROMIUM).is_file(), how=f"install chromium at {CHROMIUM} (apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenPlace]:
    """Opens a page with a link, over a collector that gives these answers."""
    with ExitStack() as stack:

        def opened(place: Place, given: Mapping[str, Json], **link: str) -> Opened:
            script = stack.enter_context(fake_collector(given))
            monkeypatch.setenv(COLLECTOR_URL, script.url)
            page = app_of(place)
            for name, value in link.items():
                page.query_params[name] = value
            return page.run(), script

        yield opened
