"""Measures pages: a real collector full of events, and each page run as a reader's session runs it, with nothing cached."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import numpy as np
from kvtrail_dashboards.answers import Requests
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL
from kvtrail_schema.batch import CONTENT_TYPE
from streamlit.testing.v1 import AppTest

from kvtrail_cli.bench.dashboard_load import one_more, parcels
from kvtrail_cli.bench.dashboard_shapes import PAGE_BUDGET_S, DashboardBench, PageTime
from kvtrail_cli.bench.senders import send_all
from kvtrail_cli.bench.server import serving
from kvtrail_cli.client import CollectorClient
from kvtrail_cli.errors import CollectorRefused
from kvtrail_cli.output import Advance

_SENDERS: Final = 4
_WHAT_TO_DO: Final = "What to do:"
"""Stands in each error that a page shows in place of an answer."""
_PAGE_TIMEOUT_S: Final = 120.0
_SCRIPT: Final = "from kvtrail_dashboards.app import run\nfrom kvtrail_dashboards.places import Place\nrun(Place.{name})\n"


class Asker(NamedTuple):
    """Where pages ask, and for which request."""

    url: str
    request: str


def bench_dashboard(events: int, loads: int, folder: Path, advance: Advance) -> DashboardBench:
    """Fill a collector, then open each page so many times. Takes about five seconds a million events before the first page."""
    with serving(folder) as server:
        sent = send_all(server.url, list(parcels(events)), _SENDERS, advance)
        with _asking(server.url), CollectorClient(server.url) as collector:
            worst = collector.get("/v1/requests", Requests, limit=1).requests[0]
            beats = count(1)
            asker = Asker(server.url, str(worst.request))
            _open(Place.NOW, next(beats), asker)  # loads the libraries of the pages, which a server does once
            pages = tuple(_page(place, loads, beats, asker) for place in Place)
    return DashboardBench(sum(arrival.rows for arrival in sent), loads, pages)


def _page(place: Place, loads: int, beats: Iterator[int], asker: Asker) -> PageTime:
    """One page, opened so many times."""
    times = [_open(place, next(beats), asker) for _ in range(loads)]
    p50, p95 = np.percentile(times, [50, 95]).tolist()
    return PageTime(place.path, p50, p95, within_budget=p95 <= PAGE_BUDGET_S)


def _open(place: Place, beat: int, asker: Asker) -> float:
    """The seconds of one opening, after an event that makes each answer old.

    Raises:
        CollectorRefused: the page shows an error in place of its answer.
    """
    content, headers = one_more(beat), {"content-type": CONTENT_TYPE}
    httpx.post(f"{asker.url}/v1/events", content=content, headers=headers).raise_for_status()
    forget()
    page = AppTest.from_string(_SCRIPT.format(name=place.name), default_timeout=_PAGE_TIMEOUT_S)
    page.query_params["last_s"] = "0"
    if place is Place.REQUEST:
        page.query_params["request"] = asker.request
    begin = time.perf_counter()
    page.run()
    seconds = time.perf_counter() - begin
    told = [str(one.value) for one in page.exception] + [str(one.value) for one in page.error if _WHAT_TO_DO in str(one.value)]
    if told:
        raise CollectorRefused(f"the page {place.path} shows an error: {told[0]}")
    return seconds


@contextmanager
def _asking(url: str) -> Iterator[None]:
    """Pages ask this collector until the block ends."""
    before = os.environ.get(COLLECTOR_URL)
    os.environ[COLLECTOR_URL] = url
    try:
        yield
    finally:
        os.environ.pop(COLLECTOR_URL, None)
        if before is not None:
            os.environ[COLLECTOR_URL] = before
