"""How is it now? The figures that matter, latency over time, what is wrong, and what holds the engine back."""

from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.charts.latency import latency_chart
from kvtrail_dashboards.compute.latency import LatencyView
from kvtrail_dashboards.compute.notices import nothing_in_range, notices_of_losses
from kvtrail_dashboards.compute.now import (
    DEFAULT_TPOT_MS,
    DEFAULT_TTFT_MS,
    VerdictLine,
    latency_views,
    pressure_lines,
    tiles,
    verdict_lines,
)
from kvtrail_dashboards.fetch import fetch_loss
from kvtrail_dashboards.fetch_pages import fetch_latency, fetch_pressure, fetch_verdicts
from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import Latency, Verdicts
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain
from kvtrail_dashboards.sections.tiles import tiles_section

_FURTHER: Final = ":material/arrow_forward:"


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.NOW, _draw)


def _draw(frame: Frame) -> None:
    """Cheap answers first, so that figures stand while verdicts are computed."""
    ttft_ms, tpot_ms = frame.view.slo_ttft_ms or DEFAULT_TTFT_MS, frame.view.slo_tpot_ms or DEFAULT_TPOT_MS
    loss, latency = fetch_loss(), fetch_latency(frame.asked, ttft_ms, tpot_ms)
    for notice in notices_of_losses(loss, frame.engine.engine):
        show_notice(notice)
    tiles_section(tiles(latency, loss, frame.engine.engine, ttft_ms, tpot_ms))
    wrong, charts = st.container(), st.container()
    with wrong, st.spinner("Looking for what is wrong …"):
        verdicts = fetch_verdicts(frame.engine.engine)
        _wrong(frame, verdicts)
        _held(frame)
    with charts:
        _charts(frame, latency, verdicts)
        _objective(frame.view, ttft_ms, tpot_ms)


def _wrong(frame: Frame, verdicts: Verdicts) -> None:
    """The verdicts, each with the way to its explanation."""
    lines = verdict_lines(verdicts.verdicts)
    if not lines:
        st.success("Nothing is found to be wrong.", icon=":material/check_circle:")
    for line in lines:
        _verdict(frame, line)
    if verdicts.missing:
        with st.expander(f"What could not be looked at ({len(verdicts.missing)})"):
            st.markdown("\n".join(f"- `{one.kind or one.field or ''}`: {plain(one.so_what)}" for one in verdicts.missing))


def _verdict(frame: Frame, line: VerdictLine) -> None:
    """One verdict, and the link to the spike that it is about."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        where = f" :gray[{plain(line.where)}]" if line.where else ""
        st.markdown(f":red[:material/error:] `{line.code}`{where} **{plain(line.headline)}**  \n{plain(line.sure)}")
        view = frame.view.about()
        view = replace(view, engine=frame.engine.engine)
        link_to(Place.SPIKE, "Explain this spike", view.with_window(*line.window) if line.window else view, icon=_FURTHER)


def _held(frame: Frame) -> None:
    """Degrade actions and backpressure that are in force."""
    for line in pressure_lines(fetch_pressure(frame.asked)):
        st.warning(plain(line), icon=":material/pan_tool:")


def _charts(frame: Frame, latency: Latency, verdicts: Verdicts) -> None:
    """Both latencies over time, side by side; a stretch that is drawn with the mouse can be explained."""
    empty = nothing_in_range("No request arrived", arrived=bool(latency.series))
    if empty is not None:
        show_notice(empty)
        return
    views = latency_views(latency, frame.engine, verdicts.window)
    for place, view, name in zip(st.columns(2, gap="large"), views, ("TTFT", "TPOT"), strict=True):
        with place:
            _chart(view, name)


def _chart(view: LatencyView, name: str) -> None:
    """One measure over time."""
    st.subheader({"TTFT": "Time to first token", "TPOT": "Time per output token"}[name], anchor=False)
    if not view.measured:
        st.caption("No request of this stretch of time has one.")
        return
    st.altair_chart(latency_chart(view), width="stretch", key=f"chart-{name}")
    st.caption(f"One point every {view.bucket_ms / 1_000:g} s, by time of arrival.")


def _objective(view: View, ttft_ms: int, tpot_ms: int) -> None:
    """What counts as good; kept in the link."""

    def choose() -> None:
        go_to(replace(view, slo_ttft_ms=int(st.session_state["slo-ttft"]), slo_tpot_ms=int(st.session_state["slo-tpot"])))

    with st.popover("Objective"):
        st.number_input("Time to first token, ms", 1, 3_600_000, ttft_ms, key="slo-ttft", on_change=choose)
        st.number_input("Time per output token, ms", 1, 3_600_000, tpot_ms, key="slo-tpot", on_change=choose)
