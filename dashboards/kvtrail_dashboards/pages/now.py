"""How is it now? The figures that matter, latency over time, what is wrong, and what holds the engine back."""

from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.answers import Loss, Window
from kvtrail_dashboards.asked import Asked
from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.compute.books import books_of, of_engine, of_rank
from kvtrail_dashboards.compute.findings import spike_lines
from kvtrail_dashboards.compute.latency import LatencyView
from kvtrail_dashboards.compute.notices import nothing_in_range, notices_of_losses
from kvtrail_dashboards.compute.now import DEFAULT_TPOT_MS, DEFAULT_TTFT_MS, Objective, latency_views, pressure_lines, tiles
from kvtrail_dashboards.compute.spikes import place_of_spike, span_of, spikes_within
from kvtrail_dashboards.compute.streams import stale_notices
from kvtrail_dashboards.compute.wall import WallTime
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch import fetch_attribution, fetch_loss
from kvtrail_dashboards.fetch_pages import fetch_latency, fetch_pressure, fetch_recorder, fetch_spikes, fetch_verdicts
from kvtrail_dashboards.link import MOST_OBJECTIVE_MS, View
from kvtrail_dashboards.page_answers import Latency
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.findings import cards, rules_section
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.narrowed import whole_caption
from kvtrail_dashboards.sections.notice import show_error, show_notice
from kvtrail_dashboards.sections.spikes import slow_stretches
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain
from kvtrail_dashboards.sections.tiles import tiles_section

_DRAWN: Final = "now-drawn"

ALWAYS_ASKED_EVENTS: Final = 2_000_000
"""With more events than this, asking every rule takes the collector longer than a page may."""


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.NOW, _draw)


def _draw(frame: Frame) -> None:
    """What is cheap first, so that figures and charts stand while verdicts are computed; their place is above the charts."""
    objective = Objective(frame.view.slo_ttft_ms or DEFAULT_TTFT_MS, frame.view.slo_tpot_ms or DEFAULT_TPOT_MS)
    loss, latency = fetch_loss(), fetch_latency(frame.asked, objective.ttft_ms, objective.tpot_ms)
    stale = st.container()
    _figures(frame, of_rank(loss, frame.view.rank), latency, objective)
    slow, wrong = st.container(), st.container()
    # A page that draws itself anew keeps its charts until it has the next: without the spike they would flicker.
    subject = replace(frame.view.about(), live=False)
    known = st.session_state.get(_DRAWN) == subject
    charts = st.container() if known else st.empty()
    if not known:
        with charts.container():
            _charts(frame, latency, None)
    _objective(frame.view, objective)
    with stale:
        _stale(frame)
    with slow:
        spike = _spike(frame)
        _slow_stretches(frame, spike)
    if known or spike is not None:
        with charts if known else charts.container():
            _charts(frame, latency, spike)
    st.session_state[_DRAWN] = subject
    with wrong:
        if _shall_ask(frame, loss):
            _rules(frame)


def _figures(frame: Frame, loss: Loss, latency: Latency, objective: Objective) -> None:
    """The tiles, what is missing under them, and what holds back."""
    for notice in notices_of_losses(loss, frame.engine.engine):
        show_notice(notice)
    tiles_section(tiles(latency, loss, frame.engine, frame.asked, objective))
    for line in pressure_lines(fetch_pressure(frame.asked)):
        st.warning(plain(line), icon=":material/pan_tool:")
    whole_caption(frame.view, "Events stored, and what holds the engine back", "tenant", "model")


def _stale(frame: Frame) -> None:
    """Whether what stands here is of now at all. Of the recorder's answer the streams alone are wanted, so no time is."""
    end_ns = (frame.engine.last_ns or 0) + 1
    try:
        recorder = fetch_recorder(Asked(frame.engine.engine, frame.view.rank, start_ns=end_ns - 1, end_ns=end_ns))
    except CollectorError as error:
        show_error(error)
        return
    for notice in stale_notices(recorder):
        show_notice(notice)


def _spike(frame: Frame) -> Window | None:
    """The costliest spike and its cause; a collector that cannot tell in time does not take the page with it."""
    whole_caption(frame.view, "Slow stretches of time, and what rules find", "rank", "tenant", "model")
    try:
        attribution = fetch_attribution(frame.engine.engine, None)
    except CollectorError as error:
        show_error(error)
        return None
    cards(frame.view.about(), spike_lines(attribution, frame.names, WallTime(frame.engine.wall_offset_ns), frame.asked))
    return attribution.window


def _slow_stretches(frame: Frame, explained: Window | None) -> None:
    """Other stretches that were slow in the time that is shown: where there are several, none need stand out by itself."""
    try:
        spikes = fetch_spikes(frame.engine.engine).spikes
    except CollectorError as error:
        show_error(error)
        return
    choices = spikes_within(spikes, frame.asked, WallTime(frame.engine.wall_offset_ns))
    known = place_of_spike(choices, span_of(explained))
    others = [choice for place, choice in enumerate(choices) if place != known]
    slow_stretches(frame.view.about(), others, "Also slow" if known is not None else "Slow for a while")


def _shall_ask(frame: Frame, loss: Loss) -> bool:
    """Whether to ask every rule: always where that is cheap, else once somebody wants it."""
    stored = books_of(of_engine(loss, frame.engine.engine)).stored
    if stored <= ALWAYS_ASKED_EVENTS:
        return True
    label = f"Ask every rule (of {stored:,} events: it takes the collector a while)"
    return st.toggle(label, key="ask-every-rule")


def _rules(frame: Frame) -> None:
    """Broken rules and mechanisms in this stretch of time; asked once a minute, as that takes the collector longest."""
    stretch = frame.view.window or frame.view.last_s
    try:
        with st.spinner("Asking every rule …"):
            verdicts = fetch_verdicts(frame.engine.engine, stretch, frame.asked)
    except CollectorError as error:
        show_error(error)
        return
    rules_section(frame.view.about(), verdicts, frame.names)


def _charts(frame: Frame, latency: Latency, spike: Window | None) -> None:
    """Both latencies over time, side by side; the spike is marked."""
    empty = nothing_in_range("No request arrived", arrived=bool(latency.series))
    if empty is not None:
        show_notice(empty)
        return
    views = latency_views(latency, frame.engine, spike)
    for place, view, name in zip(st.columns(2, gap="large"), views, ("TTFT", "TPOT"), strict=True):
        with place:
            _chart(view, name)


def _chart(view: LatencyView, name: str) -> None:
    """One measure over time."""
    st.subheader({"TTFT": "Time to first token", "TPOT": "Time per output token"}[name], anchor=False)
    if not view.measured:
        st.caption("No request of this stretch of time has one.")
        return
    st.altair_chart(latency_chart(view), width="stretch")
    st.caption(f"One point every {view.bucket_ms / 1_000:g} s, by time of arrival.")


def _objective(view: View, objective: Objective) -> None:
    """What counts as good; kept in the link."""

    def choose() -> None:
        go_to(replace(view, slo_ttft_ms=int(st.session_state["slo-ttft"]), slo_tpot_ms=int(st.session_state["slo-tpot"])))

    with st.popover("Objective"):
        st.number_input("Time to first token, ms", 1, MOST_OBJECTIVE_MS, objective.ttft_ms, key="slo-ttft", on_change=choose)
        st.number_input("Time per output token, ms", 1, MOST_OBJECTIVE_MS, objective.tpot_ms, key="slo-tpot", on_change=choose)
