"""The app: settings of the browser's page, and which function draws which page."""

from collections.abc import Callable, Mapping
from typing import Final

import streamlit as st

from kvtrail_dashboards.pages import alerts, now, prefetch, recorder, request, spike, tenants, tiers
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import remember_pages

TITLE: Final = "kvtrail"
# Streamlit leaves twice the height of its own bar empty above each page.
_LESS_AIR: Final = "<style>.stMainBlockContainer { padding-top: 4rem; padding-bottom: 3rem; }</style>"
_DRAWN_BY: Final[Mapping[Place, Callable[[], None]]] = {
    Place.NOW: now.page,
    Place.SPIKE: spike.page,
    Place.REQUEST: request.page,
    Place.TIERS: tiers.page,
    Place.PREFETCH: prefetch.page,
    Place.TENANTS: tenants.page,
    Place.ALERTS: alerts.page,
    Place.RECORDER: recorder.page,
}


def run(start: Place = Place.NOW) -> None:
    """Run the page that the reader is on, once. On the session's thread; blocks while the collector answers.

    Args:
        start: the page that an address without a path opens.
    """
    st.set_page_config(page_title=TITLE, layout="wide", initial_sidebar_state="collapsed")
    st.html(_LESS_AIR)
    pages = {
        place: st.Page(draw, title=f"{place.title} · {TITLE}", url_path=place.path, default=place is start)
        for place, draw in _DRAWN_BY.items()
    }
    remember_pages(pages)
    st.navigation(list(pages.values()), position="hidden").run()
