"""Answers to the questions of pages, asked once: reruns within a few seconds share them; at most so many are kept."""

import os
from typing import Final

import streamlit as st

from kvtrail_dashboards.answers import EventRef
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.client import CollectorClient
from kvtrail_dashboards.page_answers import (
    Block,
    Engines,
    Latency,
    OneEvent,
    PrefetchFlow,
    Pressure,
    Recorder,
    Spikes,
    Tenants,
    Tiers,
    Verdicts,
)
from kvtrail_dashboards.settings import load_settings

FRESH_S: Final = 5
RULES_FRESH_S: Final = 60
"""Asking every rule costs the collector more than all else."""
SPIKES_FRESH_S: Final = 30
"""Searching a whole night takes the collector a second."""
_ENTRIES: Final = 32


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_engines() -> Engines:
    """Engines, tenants and models. Blocks the page's thread for one short question, as all below do."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.engines()


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_latency(asked: Asked, ttft_ms: int, tpot_ms: int) -> Latency:
    """TTFT and TPOT over time."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.latency(asked, ttft_ms=ttft_ms, tpot_ms=tpot_ms)


@st.cache_data(ttl=SPIKES_FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_spikes(engine: str) -> Spikes:
    """All slow stretches of an engine; the collector searches for about a second."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/spikes", Asked(engine), Spikes)


@st.cache_data(ttl=RULES_FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_verdicts(
    engine: str,  # noqa: ARG001 - a key of what is kept
    stretch: tuple[int, int] | int | None,  # noqa: ARG001 - as above
    _asked: Asked,
) -> Verdicts:
    """All that is wrong with an engine; takes seconds where there are many events.

    Kept by engine and by the stretch that was chosen, not by its ends, which move with the data: so it is asked at most once
    in `RULES_FRESH_S`, however often and by however many readers the page is drawn.
    """
    with CollectorClient(load_settings(os.environ)) as client:
        return client.verdicts(_asked)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_pressure(asked: Asked) -> Pressure:
    """What holds an engine back."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/pressure", asked, Pressure)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_tiers(asked: Asked) -> Tiers:
    """Levels, transfers and costs."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/tiers", asked, Tiers)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_tenants(asked: Asked) -> Tenants:
    """Accounts of tenants, and deletions."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/tenants", asked, Tenants)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_prefetch(asked: Asked) -> PrefetchFlow:
    """What became of prefetches."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/prefetch/flow", asked, PrefetchFlow)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_recorder(asked: Asked) -> Recorder:
    """The streams now and over time."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.page("/v1/recorder", asked, Recorder)


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_event(engine: str, epoch: int, rank: int, seq: int) -> OneEvent:
    """One event in full."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.event(EventRef(engine, epoch, rank, seq))


@st.cache_data(ttl=FRESH_S, max_entries=_ENTRIES, show_spinner=False)
def fetch_block(engine: str, block: str) -> Block:
    """The life of a block."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.block(block, engine=engine)


def forget_pages() -> None:
    """Ask anew on the next run."""
    for ask in (
        *(fetch_engines, fetch_latency, fetch_verdicts, fetch_pressure, fetch_tiers),
        *(fetch_spikes, fetch_tenants, fetch_prefetch, fetch_recorder, fetch_event, fetch_block),
    ):
        ask.clear()
