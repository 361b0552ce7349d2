"""What all pages have: the row of links, the question, what the page is about, and words where there is nothing to draw."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.asked import Asked, asked_of
from kvtrail_dashboards.compute.ages import age
from kvtrail_dashboards.compute.names import Names, names_of
from kvtrail_dashboards.compute.narrowed import not_narrowed
from kvtrail_dashboards.compute.notices import no_engines, unknown_engine
from kvtrail_dashboards.errors import DashboardError
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.fetch_pages import fetch_engines
from kvtrail_dashboards.link import View, view_of
from kvtrail_dashboards.page_answers import EngineRow, Engines
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.filters import ENGINE_KEY, filters_section
from kvtrail_dashboards.sections.nav import nav_section
from kvtrail_dashboards.sections.notice import show_error, show_notice
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain

LIVE_S: Final = 10
_LIVE_KEY: Final = "live"


@dataclass(frozen=True, slots=True)
class Frame:
    """What a page is about: its link, its engine, what to call tenants, and the subject of its questions."""

    view: View
    engine: EngineRow
    names: Names
    asked: Asked
    device: str | None


def framed(place: Place, draw: Callable[[Frame], None]) -> None:
    """Draw a page within its frame. While it is live, it draws itself anew, and the frame around it stays.

    Every link that the page makes names the engine that it is about: the busiest one may be another tomorrow.
    """
    view = view_of(st.query_params)
    pages = st.container()
    _head(place, view)
    try:
        engine = _subject(place, view)
    except DashboardError as error:
        show_error(error)
        engine = None
    with pages:
        nav_section(place, view if engine is None else replace(view, engine=engine))
    if engine is not None:
        st.fragment(lambda: _body(draw, engine), run_every=LIVE_S if view.live else None)()


def _head(place: Place, view: View) -> None:
    """The question, and how to ask it again."""

    def choose() -> None:
        engine = view.engine or st.session_state.get(ENGINE_KEY)
        go_to(replace(view, engine=engine, live=bool(st.session_state[_LIVE_KEY])))

    title, live, refresh = st.columns([8, 2, 1.2], vertical_alignment="center")
    title.title(place.question, anchor=False)
    st.session_state[_LIVE_KEY] = view.live
    live.toggle(f"Live, every {LIVE_S} s", key=_LIVE_KEY, on_change=choose)
    refresh.button("Refresh", on_click=forget, width="stretch")


def _subject(place: Place, view: View) -> str | None:
    """The engine that the page is about, whose filters are drawn; where there is none, it is told why not."""
    known = fetch_engines()
    engine = _engine(view, known)
    if engine is None:
        return None
    filters_section(place, replace(view, engine=engine.engine), engine, known)
    unmoved = not_narrowed(place, view)
    if unmoved:
        st.caption(unmoved)
    return engine.engine


def _engine(view: View, known: Engines) -> EngineRow | None:
    """The engine that the link names, or the busiest; None, and words, where there is none."""
    names = [one.engine for one in known.engines]
    empty = no_engines(names) or unknown_engine(view.engine, names)
    if empty is not None:
        show_notice(empty)
        return None
    return next(one for one in known.engines if view.engine in {None, one.engine})


def _body(draw: Callable[[Frame], None], name: str) -> None:
    """The page itself; runs alone when it is live, so it looks up anew what it is about: the same engine as its frame."""
    try:
        view, known = replace(view_of(st.query_params), engine=name), fetch_engines()
        engine = next((one for one in known.engines if one.engine == name), None)
        if engine is not None:
            _labels(engine)
            draw(Frame(view, engine, names_of(known), asked_of(view, engine), engine.device))
    except DashboardError as error:
        show_error(error)


def _labels(engine: EngineRow) -> None:
    """Which engine this is about, on what it ran, and how old the newest word from it is."""
    told = f"engine **{plain(engine.engine)}**"
    device = f" :gray-badge[{plain(engine.device)}]" if engine.device is not None else ""
    heard = age(engine.heard_wall_ns, time.time_ns())
    st.markdown(f"{told}{device} :gray[last heard of {heard}]")
