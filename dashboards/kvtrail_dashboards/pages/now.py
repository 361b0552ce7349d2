"""How is it now? The figures that matter, latency over time, what is wrong, and what holds the engine back."""

from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.answers import Loss, Window
from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.compute.latency import LatencyView
from kvtrail_dashboards.compute.notices import nothing_in_range, notices_of_losses
from kvtrail_dashboards.compute.now import (
    DEFAULT_TPOT_MS,
    DEFAULT_TTFT_MS,
    POPULATION,
    VerdictLine,
    latency_views,
    pressure_lines,
    tiles,
    unnamed_line,
    verdict_lines,
)
from kvtrail_dashboards.compute.spikes import place_of_spike, span_of, spikes_within
from kvtrail_dashboards.compute.wall import WallTime
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch import fetch_attribution, fetch_loss
from kvtrail_dashboards.fetch_pages import fetch_latency, fetch_pressure, fetch_spikes, fetch_verdicts
from kvtrail_dashboards.link import MOST_OBJECTIVE_MS, View
from kvtrail_dashboards.page_answers import Latency
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_error, show_notice
from kvtrail_dashboards.sections.spikes import slow_stretches
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain
from kvtrail_dashboards.sections.tiles import tiles_section

_FURTHER: Final = ":material/arrow_forward:"

ALWAYS_ASKED_EVENTS: Final = 2_000_000
"""With more events than this, asking every rule takes the collector longer than a page may."""


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.NOW, _draw)


def _draw(frame: Frame) -> None:
    """What is cheap first, so that figures and charts stand while verdicts are computed; their place is above the charts."""
    ttft_ms, tpot_ms = frame.view.slo_ttft_ms or DEFAULT_TTFT_MS, frame.view.slo_tpot_ms or DEFAULT_TPOT_MS
    loss, latency = fetch_loss(), fetch_latency(frame.asked, ttft_ms, tpot_ms)
    for notice in notices_of_losses(loss, frame.engine.engine):
        show_notice(notice)
    tiles_section(tiles(latency, loss, frame.engine.engine, ttft_ms, tpot_ms))
    _held(frame)
    slow, wrong, charts = st.container(), st.container(), st.empty()
    with charts.container():
        _charts(frame, latency, None)
    _objective(frame.view, ttft_ms, tpot_ms)
    with slow:
        spike = _spike(frame)
        _slow_stretches(frame, spike)
    if spike is not None:
        with charts.container():
            _charts(frame, latency, spike)
    with wrong:
        if _shall_ask(frame, loss):
            _rules(frame)


def _spike(frame: Frame) -> Window | None:
    """The latest spike and its cause; a collector that cannot tell in time does not take the page with it."""
    try:
        attribution = fetch_attribution(frame.engine.engine, None)
    except CollectorError as error:
        show_error(error)
        return None
    for line in verdict_lines(attribution.verdicts):
        _verdict(frame, line)
    window = attribution.window
    if window is not None and not attribution.verdicts:
        line = unnamed_line(attribution)
        _verdict(frame, line)
    return window


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
    view = replace(frame.view.about(), engine=frame.engine.engine)
    slow_stretches(view, others, "Also slow" if known is not None else "Slow for a while")


def _shall_ask(frame: Frame, loss: Loss) -> bool:
    """Whether to ask every rule: always where that is cheap, else once somebody wants it."""
    stored = sum(stream.stored for stream in loss.streams if stream.engine == frame.engine.engine)
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
    lines = verdict_lines(tuple(one for one in verdicts.verdicts if one.basis != POPULATION))
    if not lines:
        st.success("Every rule was asked; no other finds anything.", icon=":material/check_circle:")
    for line in lines:
        _verdict(frame, line)
    if verdicts.missing:
        with st.expander(f"What could not be looked at ({len(verdicts.missing)})"):
            st.markdown("\n".join(f"- `{one.kind or one.field or ''}`: {plain(one.so_what)}" for one in verdicts.missing))


def _verdict(frame: Frame, line: VerdictLine) -> None:
    """One verdict, and the link to the spike that it is about."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        where = f" :gray[{plain(line.where)}]" if line.where else ""
        said = [f":red[:material/error:] `{line.code}`{where} **{plain(line.headline)}**"]
        said += [plain(f"{line.figures[:1].upper()}{line.figures[1:]}.")] if line.figures else []
        said += [f"What to do: {plain(line.action)} :gray[{plain(line.sure)}]" if line.action else plain(line.sure)]
        st.markdown("  \n".join(said))
        view = replace(frame.view.about(), engine=frame.engine.engine)
        if line.window is not None:
            link_to(Place.SPIKE, "Explain this spike", view.with_window(*line.window), icon=_FURTHER)
        elif line.event is not None:
            link_to(Place.REQUEST, "See it happen", replace(view, event=line.event), icon=_FURTHER)


def _held(frame: Frame) -> None:
    """Degrade actions and backpressure that are in force."""
    for line in pressure_lines(fetch_pressure(frame.asked)):
        st.warning(plain(line), icon=":material/pan_tool:")


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


def _objective(view: View, ttft_ms: int, tpot_ms: int) -> None:
    """What counts as good; kept in the link."""

    def choose() -> None:
        go_to(replace(view, slo_ttft_ms=int(st.session_state["slo-ttft"]), slo_tpot_ms=int(st.session_state["slo-tpot"])))

    with st.popover("Objective"):
        st.number_input("Time to first token, ms", 1, MOST_OBJECTIVE_MS, ttft_ms, key="slo-ttft", on_change=choose)
        st.number_input("Time per output token, ms", 1, MOST_OBJECTIVE_MS, tpot_ms, key="slo-tpot", on_change=choose)
