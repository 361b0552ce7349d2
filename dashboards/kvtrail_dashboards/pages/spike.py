"""Why was it slow? P99 over time, the spike's verdict and excess, the slowest requests, and one of them in full."""

from dataclasses import replace

from kvtrail_dashboards.compute.notices import nothing_yet, notices
from kvtrail_dashboards.fetch import fetch_explanation, fetch_loss, fetch_series
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.excess import excess_section
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.latency import latency_section
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.request import request_section
from kvtrail_dashboards.sections.verdict import verdict_section
from kvtrail_dashboards.sections.worst import exemplars_section, worst_section


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.SPIKE, _draw)


def _draw(frame: Frame) -> None:
    """The sections, in the order in which somebody in a hurry needs them."""
    engine, view = frame.engine.engine, frame.view
    loss, series = fetch_loss(), fetch_series(engine)
    empty = nothing_yet(loss, series)
    if empty is not None:
        show_notice(empty)
        return
    explanation = fetch_explanation(engine, view.window, series)
    for notice in notices(loss, engine, explanation.attribution):
        show_notice(notice)
    verdict_section(explanation, frame.names, view)
    exemplars_section(view, explanation)
    latency_section(view, explanation)
    excess_section(explanation, frame.names)
    worst_section(view, explanation)
    request_section(replace(view, engine=engine), engine, frame.names)
