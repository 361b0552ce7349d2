"""The entry that Streamlit runs: settings of the page, and the list of pages. To add a page: write it, name it here."""

import streamlit as st

from kvtrail_dashboards.pages import spike

PAGES = [st.Page(spike.page, title="Why was it slow?", url_path="spike", default=True)]

st.set_page_config(page_title="kvtrail", layout="wide", initial_sidebar_state="collapsed")
st.navigation(PAGES, position="hidden" if len(PAGES) == 1 else "top").run()
