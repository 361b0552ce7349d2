"""A word beside each part of a page that is of more than what was chosen."""

import streamlit as st

from kvtrail_dashboards.compute.narrowed import of_all
from kvtrail_dashboards.link import View


def whole_caption(view: View, what: str, *names: str) -> None:
    """`what` is of all tenants, models or ranks, though one is chosen; nothing where none of `names` is."""
    whole = of_all(view, *names)
    if whole:
        st.caption(f"{what}: {whole}.")
