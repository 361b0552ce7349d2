"""Measures pages: a real collector full of events, and each page run as a reader's session runs it, with nothing cached."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import numpy as np
from kvtrail_dashboards.answers import Requests
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL
from kvtrail_schema.batch import CONTENT_TYPE
from streamlit.testing.v1 import AppTest

from kvtrail_cli.bench.dashboard_load import one_more, parcels
from kvtrail_cli.bench.dashboard_shapes import DashboardBench, PageTime
from kvtrail_cli.bench.senders import send_all
from kvtrail_cli.bench.server import serving
from kvtrail_cli.client import CollectorClient
from kvtrail_cli.errors import CollectorRefused
from kvtrail_cli.output import Advance

_SENDERS: Final = 4
_PAGE_TIMEOUT_S: Final = 120.0
_SCRIPT: Final = "from kvtrail_dashboards.app import run\nfrom kvtrail_dashboards.places import Place\nrun(Place.{name})\n"


def bench_dashboard(events: int, loads: int, folder: Path, advance: Advance) -> DashboardBench:
    """Fill a collector, then open each page so many times. Takes about five seconds a million events before the first page."""
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # pages that run outside a server make it warn
    with serving(folder) as server:
        sent = send_all(server.url, list(parcels(events)), _SENDERS, advance)
        with _asking(server.url), CollectorClient(server.url) as collector:
            worst = collector.get("/v1/requests", Requests, limit=1).requests[0]
            pages = tuple(_page(place, loads, server.url, str(worst.request)) for place in Place)
    return DashboardBench(sum(arrival.rows for arrival in sent), loads, pages)


def _page(place: Place, loads: int, url: str, request: str) -> PageTime:
    """One page, opened so many times."""
    times = [_open(place, url, request) for _ in range(loads)]
    p50, p95 = np.percentile(times, [50, 95]).tolist()
    return PageTime(place.path, p50, p95)


def _open(place: Place, url: str, request: str) -> float:
    """The seconds of one opening, after an event that makes each answer old.

    Raises:
        CollectorRefused: the page shows an error in place of its answer.
    """
    httpx.post(f"{url}/v1/events", content=one_more(time.monotonic_ns() >> 10), headers={"content-type": CONTENT_TYPE})
    forget()
    page = AppTest.from_string(_SCRIPT.format(name=place.name), default_timeout=_PAGE_TIMEOUT_S)
    page.query_params["last_s"] = "0"
    if place is Place.REQUEST:
        page.query_params["request"] = request
    begin = time.perf_counter()
    page.run()
    seconds = time.perf_counter() - begin
    told = [str(one.value) for one in (*page.exception, *page.error)]
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
