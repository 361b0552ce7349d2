"""The row of links to all pages, and links to one of them: each keeps what the view is about."""

from collections.abc import Mapping
from typing import Final

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from kvtrail_dashboards.link import View, params_of
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.steer import go_to

_KEY: Final = "kvtrail-pages"
_HERE: Final = "kvtrail-here"


def remember_pages(pages: Mapping[Place, StreamlitPage]) -> None:
    """Keep this run's pages for links; once a run, before any page is drawn."""
    st.session_state[_KEY] = dict(pages)


def nav_section(here: Place, view: View) -> None:
    """All pages, about the same engine and time."""
    st.session_state[_HERE] = here
    with st.container(horizontal=True, gap="small"):
        for place in Place:
            _link(place, place.title, view.about())


def link_to(place: Place, label: str, view: View, *, icon: str | None = None) -> None:
    """A link to a page with a view; reached by keyboard as any link.

    To the page itself it is a button, as Streamlit's link would leave the old address in the bar.
    """
    if st.session_state[_HERE] is not place:
        _link(place, label, view, icon)
        return
    key = f"show-{'&'.join(f'{name}={value}' for name, value in params_of(view).items())}-{label}"
    st.button(label, key=key, icon=icon, type="tertiary", on_click=go_to, args=(view,))


def _link(place: Place, label: str, view: View, icon: str | None = None) -> None:
    """A link as browsers know it."""
    st.page_link(_pages()[place], label=label, icon=icon, query_params=params_of(view))


def _pages() -> Mapping[Place, StreamlitPage]:
    """This session's pages."""
    pages: Mapping[Place, StreamlitPage] = st.session_state[_KEY]
    return pages
