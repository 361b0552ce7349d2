"""The row of links to all pages, and links to one of them: each keeps what the view is about."""

from collections.abc import Mapping
from typing import Final

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from kvtrail_dashboards.link import View, params_of
from kvtrail_dashboards.places import Place

_KEY: Final = "kvtrail-pages"


def remember_pages(pages: Mapping[Place, StreamlitPage]) -> None:
    """Keep this run's pages for links; once a run, before any page is drawn."""
    st.session_state[_KEY] = dict(pages)


def nav_section(view: View) -> None:
    """All pages, about the same engine and time."""
    with st.container(horizontal=True, gap="small"):
        for place in Place:
            link_to(place, place.title, view.about())


def link_to(place: Place, label: str, view: View, *, icon: str | None = None) -> None:
    """A link to a page with a view; reached by keyboard as any link."""
    st.page_link(_pages()[place], label=label, icon=icon, query_params=params_of(view))


def switch_to(place: Place, view: View) -> None:
    """Leave for a page with a view; does not return."""
    st.switch_page(_pages()[place], query_params=params_of(view))


def _pages() -> Mapping[Place, StreamlitPage]:
    """This session's pages."""
    pages: Mapping[Place, StreamlitPage] = st.session_state[_KEY]
    return pages
