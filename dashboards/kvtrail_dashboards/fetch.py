"""Answers for one view, asked once: reruns of the page within a few seconds share them."""

import os
from dataclasses import dataclass
from typing import Final

import streamlit as st

from kvtrail_dashboards.answers import Attribution, Loss, Requests, Series, Why
from kvtrail_dashboards.client import CollectorClient
from kvtrail_dashboards.compute.latency import COARSE_BUCKET_MS, bucket_ms_for
from kvtrail_dashboards.compute.worst import MAX_ROWS
from kvtrail_dashboards.fetch_pages import forget_pages
from kvtrail_dashboards.settings import load_settings

FRESH_S: Final = 10
_ENTRIES: Final = 64


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that one view of the page is made from, but for the one request."""

    engine: str
    series: Series
    attribution: Attribution
    worst: Requests


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_loss() -> Loss:
    """The balance of all streams. Blocks the page's thread for one question."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.loss()


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_series(engine: str) -> Series:
    """TTFT over time in buckets that fit the screen. Blocks the page's thread for two short questions."""
    with CollectorClient(load_settings(os.environ)) as client:
        coarse = client.series(engine=engine, bucket_ms=COARSE_BUCKET_MS)
        return client.series(engine=engine, bucket_ms=bucket_ms_for(coarse))


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner="Comparing the slow requests with those before …")
def fetch_attribution(engine: str, window: tuple[int, int] | None) -> Attribution:
    """What made requests slow. Blocks the page's thread while the collector computes, at most 30 s."""
    start_ns, end_ns = window or (None, None)
    with CollectorClient(load_settings(os.environ)) as client:
        return client.attribution(engine=engine, start_ns=start_ns, end_ns=end_ns)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_worst(engine: str, window: tuple[int | None, int | None] | None) -> Requests:
    """The slowest requests of a window, or of all. Blocks the page's thread for one question."""
    start_ns, end_ns = window or (None, None)
    with CollectorClient(load_settings(os.environ)) as client:
        return client.worst_requests(engine=engine, start_ns=start_ns, end_ns=end_ns, limit=MAX_ROWS)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner="Laying out the request …")
def fetch_why(engine: str, request: str, within: tuple[int, int] | None = None) -> Why:
    """Where one request's time went, of several so named that in a window. Blocks the page's thread for one question."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.why(request, engine=engine, within=within)


def fetch_explanation(engine: str, window: tuple[int, int] | None, series: Series) -> Explanation:
    """The explanation of a window, or of the spike that the collector finds, and its slowest requests."""
    attribution = fetch_attribution(engine, window)
    found = attribution.window
    shown = window or ((found.start_ns, found.end_ns) if found else None)
    return Explanation(engine, series, attribution, fetch_worst(engine, shown))


def forget() -> None:
    """Ask anew on the next run of the page."""
    for ask in (fetch_loss, fetch_series, fetch_attribution, fetch_worst, fetch_why):
        ask.clear()
    forget_pages()
