"""What a page is about: engine, rank, tenant, model and time. Each choice goes into the link, and is read from there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import streamlit as st

from kvtrail_dashboards.asked import DEFAULT_LAST_S, window_of
from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import EngineRow, Engines, Named
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.steer import go_to

RANGES: Final[Mapping[int, str]] = {
    300: "last 5 minutes",
    900: "last 15 minutes",
    3_600: "last hour",
    21_600: "last 6 hours",
    86_400: "last day",
    0: "everything",
}
ENGINE_KEY: Final = "filter-engine"
_FIXED: Final = -1
_HOLD: Final = -2
_Value = TypeVar("_Value")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def filters_section(place: Place, view: View, engine: EngineRow, known: Engines) -> None:
    """A choice for each thing that narrows the page's answer and of which there are several, and for the time."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _engine_choice(view, engine, known)
        if place.narrowed_by("rank"):
            ranks = _options(engine.ranks, view.rank)
            _choice("Rank", ranks, view.rank, lambda rank: replace(view, rank=rank), lambda rank: f"rank {rank}")
        if place.narrowed_by("tenant"):
            _named_choice("Tenant", known.tenants, view.tenant, lambda tenant: replace(view, tenant=tenant))
        if place.narrowed_by("model"):
            _named_choice("Model", known.models, view.model, lambda model: replace(view, model=model))
        if place.narrowed_by("time"):
            _time_choice(view, engine)


def _engine_choice(view: View, engine: EngineRow, known: Engines) -> None:
    """Another engine has another clock and other requests, so that those are dropped from the link; the rest stays."""
    names = [one.engine for one in known.engines]

    def choose() -> None:
        kept = View(last_s=view.last_s, slo_ttft_ms=view.slo_ttft_ms, slo_tpot_ms=view.slo_tpot_ms, live=view.live)
        go_to(replace(kept, engine=st.session_state[ENGINE_KEY]))

    st.session_state[ENGINE_KEY] = engine.engine
    st.selectbox("Engine", names, key=ENGINE_KEY, on_change=choose, width=200)


def _named_choice(label: str, values: Sequence[Named], chosen: str | None, change: Callable[[str | None], View]) -> None:
    """A choice among hashed values by their names."""
    names = {one.id: one.name for one in values}
    _choice(label, _options(tuple(names), chosen), chosen, change, lambda value: names.get(str(value), str(value)))


def _options(values: Sequence[_Value], chosen: _Value | None) -> Sequence[_Value | None]:
    """All, and each value, where there are several or one is chosen; a link may name one that is not there, or not any more."""
    if len(values) <= 1 and chosen is None:
        return ()
    return (None, *values, *([chosen] if chosen is not None and chosen not in values else []))


def _choice(
    label: str,
    options: Sequence[_Value | None],
    chosen: _Value | None,
    change: Callable[[_Value | None], View],
    told: Callable[[_Value], str],
) -> None:
    """A choice of one value or all; nothing where there is none to make."""
    key = f"filter-{label.lower()}"

    def choose() -> None:
        go_to(change(st.session_state[key]))

    if options:
        st.session_state[key] = chosen if chosen in options else None
        st.selectbox(
            label,
            options,
            key=key,
            on_change=choose,
            placeholder="all",
            format_func=lambda value: "all" if value is None else told(value),
            width=180,
        )


def _time_choice(view: View, engine: EngineRow) -> None:
    """The newest stretch, or the one that the link holds fast."""

    def choose() -> None:
        seconds = st.session_state["filter-time"]
        if seconds == _HOLD and held is not None:
            go_to(view.with_window(*held))
        elif seconds not in {_FIXED, _HOLD}:
            go_to(replace(view, window=None, last_s=None if seconds == DEFAULT_LAST_S else seconds))

    told = dict(RANGES)
    chosen = DEFAULT_LAST_S if view.last_s is None else view.last_s
    if view.window is not None:
        chosen, told[_FIXED] = _FIXED, _fixed(view.window, engine)
    told.setdefault(chosen, f"last {chosen} s")
    held = window_of(view, engine)
    if view.window is None and held is not None:
        told[_HOLD] = "hold this time in the link"
    st.session_state["filter-time"] = chosen
    st.selectbox("Time", list(told), key="filter-time", on_change=choose, format_func=lambda value: told[value], width=280)


def _fixed(window: tuple[int, int], engine: EngineRow) -> str:
    """A window in wall time, UTC."""
    start, end = (_EPOCH + timedelta(microseconds=(at + engine.wall_offset_ns) // 1_000) for at in window)
    return f"{start:%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
