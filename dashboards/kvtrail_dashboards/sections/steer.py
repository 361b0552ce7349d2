"""The link is the page's only memory: choices are written there, and the next run reads them."""

import streamlit as st

from kvtrail_dashboards.link import View, params_of


def go_to(view: View) -> None:
    """Make this view the page's; takes effect on the run that follows a callback."""
    st.query_params.from_dict(params_of(view))
