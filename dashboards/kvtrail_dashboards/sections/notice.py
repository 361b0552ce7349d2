"""Notices and errors: what is, and what to do about it."""

import streamlit as st

from kvtrail_dashboards.compute.notices import Level, Notice
from kvtrail_dashboards.errors import DashboardError
from kvtrail_dashboards.sections.text import as_code, plain


def show_notice(notice: Notice | None) -> None:
    """One notice, as strong as it deserves; none shows nothing."""
    if notice is None:
        return
    show = {Level.GOOD: st.success, Level.NOTE: st.info, Level.WARNING: st.warning, Level.ALARM: st.error}[notice.level]
    show(f"**{plain(notice.what)}** {plain(notice.do, code=True)}")


def show_error(error: DashboardError) -> None:
    """An error as people can act on it; the page offers to ask again."""
    what = f"{error.what[:1].upper()}{error.what[1:]}"
    st.error(f"**{plain(what)}**  \nWhere: {as_code(error.where)}  \nWhat to do: {plain(error.do, code=True)}")
