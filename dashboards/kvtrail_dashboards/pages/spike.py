"""Why was it slow? P99 over time, the spike's verdict and excess, the slowest requests, and one of them in full."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kvtrail_dashboards.answers import Loss
from kvtrail_dashboards.compute.notices import nothing_yet, notices, unknown_engine
from kvtrail_dashboards.errors import DashboardError
from kvtrail_dashboards.fetch import Explanation, engines_of, fetch_explanation, fetch_loss, fetch_series
from kvtrail_dashboards.link import View, view_of
from kvtrail_dashboards.sections.excess import excess_section
from kvtrail_dashboards.sections.latency import latency_section
from kvtrail_dashboards.sections.notice import show_error, show_notice
from kvtrail_dashboards.sections.request import request_section
from kvtrail_dashboards.sections.top import labels_section, title_section
from kvtrail_dashboards.sections.verdict import verdict_section
from kvtrail_dashboards.sections.worst import worst_section


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers; an error becomes its text."""
    labels = title_section()
    try:
        _page(view_of(st.query_params), labels)
    except DashboardError as error:
        show_error(error)


def _page(view: View, labels: DeltaGenerator) -> None:
    """Stop early, in words, where there is nothing to explain."""
    loss = fetch_loss()
    engines = engines_of(loss)
    strange = unknown_engine(view.engine, engines)
    series = fetch_series(view.engine or engines[0]) if engines and strange is None else None
    empty = strange or nothing_yet(loss, series)
    if empty is not None or series is None:
        show_notice(empty)
        return
    explanation = fetch_explanation(view, engines, series)
    labels_section(labels, explanation)
    _explain(view, loss, explanation)


def _explain(view: View, loss: Loss, explanation: Explanation) -> None:
    """The sections, in the order in which somebody in a hurry needs them."""
    for notice in notices(loss, explanation.engine, explanation.attribution):
        show_notice(notice)
    verdict_section(explanation)
    latency_section(view, explanation)
    excess_section(explanation)
    worst_section(view, explanation)
    request_section(view, explanation)
