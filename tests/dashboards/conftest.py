"""What the dashboard's tests share: a clean cache, no settings from outside, and warnings that are not ours."""

from collections.abc import Iterator

import pytest
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.settings import COLLECTOR_URL, READ_TOKEN_FILE


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test says where its collector is, and asks anew."""
    monkeypatch.delenv(COLLECTOR_URL, raising=False)
    monkeypatch.delenv(READ_TOKEN_FILE, raising=False)
    forget()
    yield
    forget()
