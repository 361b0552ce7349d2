"""Where did its time go? One request from its arrival to its first token, what ran beside it, and what began it."""

from dataclasses import replace

import streamlit as st

from kvtrail_dashboards.compute.worst import worst_lines
from kvtrail_dashboards.fetch import fetch_worst
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.event import event_section
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.request import request_section
from kvtrail_dashboards.sections.worst import request_field, worst_table


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.REQUEST, _draw)


def _draw(frame: Frame) -> None:
    """The event that was picked first, as that is where the way through the pages ends; then the request."""
    view, engine = replace(frame.view, engine=frame.engine.engine), frame.engine.engine
    bounds = frame.asked.start_ns, frame.asked.end_ns
    lines = worst_lines(fetch_worst(engine, bounds))
    request_field(view, lines)
    event_section(view)
    if view.request is None:
        st.caption("The slowest requests of this stretch of time; choose one, or paste an id above.")
        worst_table(view, lines)
    request_section(view, engine, frame.names)
