"""The app: settings of the browser's page, and the list of pages. To add a page: write it, name it here."""

from typing import Final

import streamlit as st

from kvtrail_dashboards.pages import spike

TITLE: Final = "kvtrail"


def run() -> None:
    """Run the page that the reader is on, once. On the session's thread; blocks while the collector answers."""
    st.set_page_config(page_title=TITLE, layout="wide", initial_sidebar_state="collapsed")
    pages = [st.Page(spike.page, title="Why was it slow?", url_path="spike", default=True)]
    st.navigation(pages, position="hidden" if len(pages) == 1 else "top").run()
