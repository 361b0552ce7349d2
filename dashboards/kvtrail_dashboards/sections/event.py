"""One event in full, and the way to what caused it and to what it caused."""

from dataclasses import replace

import streamlit as st

from kvtrail_dashboards.compute.event import EventLink, EventView, event_view
from kvtrail_dashboards.compute.events import event_of_name
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch_pages import fetch_event
from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_error
from kvtrail_dashboards.sections.tables import show_pairs
from kvtrail_dashboards.sections.text import plain


def event_section(view: View) -> None:
    """Nothing until an event is named; one that is not stored does not take the page with it."""
    if view.event is None:
        return
    ref = event_of_name(view.event)
    if ref is None:
        st.warning("The link names no event: it should be engine/epoch/rank/seq.")
        return
    try:
        event = event_view(fetch_event(ref.engine, ref.epoch, ref.rank, ref.seq))
    except CollectorError as error:
        show_error(error)
        return
    _show(view, event)


def _show(view: View, event: EventView) -> None:
    """What it says, and its neighbours in the chain of causes."""
    with st.container(border=True):
        st.subheader(f"Event: {plain(event.kind)}", anchor=False)
        st.caption(f"{event.when} · engine / epoch / rank / seq: {plain(event.name)}")
        fields, around = st.columns([3, 2], gap="large")
        with fields:
            show_pairs(event.fields, "field")
        with around:
            _around(view, event)


def _around(view: View, event: EventView) -> None:
    """What caused it, what it caused, whose it is."""
    st.markdown("**Caused by**")
    if event.cause is None:
        st.caption("Nothing that is known: here the chain begins.")
    else:
        _go(view, event.cause)
    if event.effects:
        st.markdown("**It caused**")
        for effect in event.effects:
            _go(view, effect)
    if event.request is not None and event.request != view.request:
        link_to(Place.REQUEST, "The request of this event", replace(view, request=event.request))
    if event.block is not None:
        link_to(Place.TIERS, "Where the copies of its block were", replace(view.about(), block=event.block))


def _go(view: View, link: EventLink) -> None:
    """A link to another event."""
    link_to(Place.REQUEST, plain(link.label), replace(view, event=link.name))
