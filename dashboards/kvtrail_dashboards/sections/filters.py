"""What a page is about: engine, rank, tenant, model and time. Each choice goes into the link, and is read from there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import streamlit as st

from kvtrail_dashboards.asked import DEFAULT_LAST_S
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
_FIXED: Final = -1
_Value = TypeVar("_Value")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def filters_section(place: Place, view: View, engine: EngineRow, known: Engines) -> None:
    """A choice for each thing that narrows the page's answer and of which there are several, and for the time."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _engine_choice(view, engine, known)
        if place.narrowed_by("rank"):
            ranks = [None, *engine.ranks] if len(engine.ranks) > 1 else []
            _choice("Rank", ranks, view.rank, lambda rank: replace(view, rank=rank), lambda rank: f"rank {rank}")
        if place.narrowed_by("tenant"):
            _named_choice("Tenant", known.tenants, view.tenant, lambda tenant: replace(view, tenant=tenant))
        if place.narrowed_by("model"):
            _named_choice("Model", known.models, view.model, lambda model: replace(view, model=model))
        if place.narrowed_by("time"):
            _time_choice(view, engine)


def _engine_choice(view: View, engine: EngineRow, known: Engines) -> None:
    """Another engine has another clock and other requests, so that those are dropped from the link."""
    names = [one.engine for one in known.engines]

    def choose() -> None:
        go_to(View(engine=st.session_state["filter-engine"], last_s=view.last_s))

    st.session_state["filter-engine"] = engine.engine
    st.selectbox("Engine", names, key="filter-engine", on_change=choose, width=200)


def _named_choice(label: str, values: Sequence[Named], chosen: str | None, change: Callable[[str | None], View]) -> None:
    """A choice among hashed values by their names."""
    names = {one.id: one.name for one in values}
    options = [None, *names] if len(names) > 1 or chosen else []
    if chosen is not None and chosen not in names:
        options.append(chosen)
    _choice(label, options, chosen, change, lambda value: names.get(str(value), str(value)))


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
        if seconds != _FIXED:
            go_to(replace(view, window=None, last_s=None if seconds == DEFAULT_LAST_S else seconds))

    told = dict(RANGES)
    chosen = DEFAULT_LAST_S if view.last_s is None else view.last_s
    if view.window is not None:
        chosen, told[_FIXED] = _FIXED, _fixed(view.window, engine)
    told.setdefault(chosen, f"last {chosen} s")
    st.session_state["filter-time"] = chosen
    st.selectbox("Time", list(told), key="filter-time", on_change=choose, format_func=lambda value: told[value], width=280)


def _fixed(window: tuple[int, int], engine: EngineRow) -> str:
    """A window in wall time, UTC."""
    start, end = (_EPOCH + timedelta(microseconds=(at + engine.wall_offset_ns) // 1_000) for at in window)
    return f"{start:%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
