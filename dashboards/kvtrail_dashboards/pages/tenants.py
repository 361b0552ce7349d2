"""Who uses what, and is it theirs? Requests, quotas, isolation, and deletions with their evidence."""

from dataclasses import replace

import streamlit as st

from kvtrail_dashboards.compute.notices import nothing_in_range
from kvtrail_dashboards.compute.tenants import deletion_lines, is_cut, tenant_lines, tenant_tiles
from kvtrail_dashboards.fetch_pages import fetch_tenants
from kvtrail_dashboards.page_answers import Tenants
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.tables import Column, cut_caption, show_table
from kvtrail_dashboards.sections.text import plain
from kvtrail_dashboards.sections.tiles import tiles_section

_LINKED = 5


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.TENANTS, _draw)


def _draw(frame: Frame) -> None:
    """Borders first, then who is behind them."""
    tenants = fetch_tenants(frame.asked)
    tiles_section(tenant_tiles(tenants))
    empty = nothing_in_range("No request arrived, and no tenant holds anything", arrived=bool(tenants.tenants))
    if empty is not None:
        show_notice(empty)
    else:
        _table(frame, tenants)
    _deletions(frame, tenants)


def _table(frame: Frame, tenants: Tenants) -> None:
    """One row a tenant."""
    st.subheader("Tenants", anchor=False)
    columns = (
        Column("name", "tenant"),
        Column("tenant", "hashed"),
        Column("requests", "requests", "%d"),
        Column("p50_ms", "TTFT P50, ms", "%.1f"),
        Column("p95_ms", "P95, ms", "%.1f"),
        Column("p99_ms", "P99, ms", "%.1f"),
        Column("holds", "holds, of its quota"),
        Column("refused", "refused", "%d"),
        Column("evicted", "evicted by quota", "%d"),
        Column("foreign", "foreign misses", "%d"),
        Column("stale", "old versions", "%d"),
    )
    show_table(tenant_lines(tenants, frame.names), columns)
    cut_caption(tenants.tenants_left_out, "tenants", "those with most requests, and those that hold most")
    if not frame.names:
        st.caption("Events hold hashes alone. Name them in the file of the collector's setting `names_file`.")


def _deletions(frame: Frame, tenants: Tenants) -> None:
    """What was forbidden, what that took, and the events that prove it."""
    st.subheader("Deletions and their evidence", anchor=False)
    lines = deletion_lines(tenants)
    if not lines:
        st.caption("Nothing was invalidated in this stretch of time.")
        return
    columns = (
        Column("at", "asked for at, UTC", "moment"),
        Column("reason", "reason"),
        Column("selector", "selector, hashed"),
        Column("copies", "copies taken away"),
        Column("lasted_ms", "until the last was gone, ms", "%.1f"),
        Column("event", "event"),
    )
    show_table(lines, columns)
    if is_cut(tenants):
        st.caption(f"The newest {len(lines):,}; there may be older ones. Choose an earlier stretch of time to see them.")
    with st.container(horizontal=True):
        for line in lines[:_LINKED]:
            view = replace(frame.view.about(), engine=frame.engine.engine, event=line.event)
            link_to(Place.REQUEST, plain(f"Evidence of {line.at:%m-%d %H:%M:%S} UTC"), view)
