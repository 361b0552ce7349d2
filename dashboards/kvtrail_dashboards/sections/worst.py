"""The slowest requests; choosing one writes it into the link, with the window that it was found in."""

from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from kvtrail_dashboards.compute.worst import WorstLine, exemplar_links, place_of, worst_lines
from kvtrail_dashboards.fetch import Explanation
from kvtrail_dashboards.link import View
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain

_TABLE_KEY = "worst"
_PICK_KEY = "request-choice"
_TABLE_PX = 260
_MOST_EXEMPLARS = 5
_AROUND = (Place.TIERS, Place.PREFETCH, Place.TENANTS)


def worst_section(view: View, explanation: Explanation) -> None:
    """A table to click on, and a field that takes any request's id."""
    st.subheader("Slowest requests", anchor=False)
    lines = worst_lines(explanation.worst)
    held = _held(view, explanation)
    st.caption("Of all requests." if held.window is None else "Of those that arrived in the window above.")
    if not lines:
        st.caption("No request arrived in this window. Choose another stretch of time above.")
    worst_table(held, lines)
    request_field(held, lines)


def exemplars_section(view: View, explanation: Explanation) -> None:
    """The requests that show the cause best, a click away."""
    if not explanation.attribution.exemplars:
        return
    held = _held(view, explanation)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Requests that show it best**", width="content")
        for name, request in exemplar_links(explanation.attribution)[:_MOST_EXEMPLARS]:
            link_to(Place.REQUEST, plain(name), replace(held, request=request))


def around_section(view: View, explanation: Explanation) -> None:
    """Other pages about the time of the spike: what the tiers, the prefetches and the tenants did then."""
    if explanation.attribution.window is None:
        return
    held = _held(view, explanation).about()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**The same time on**", width="content")
        for place in _AROUND:
            link_to(place, f"{place.title} then", held)


def worst_table(view: View, lines: tuple[WorstLine, ...]) -> None:
    """One row a request; a click chooses it."""

    def choose() -> None:
        rows = st.session_state[_TABLE_KEY].selection.rows
        go_to(replace(view, request=lines[rows[0]].request if rows else None))

    if not lines:
        return
    st.dataframe(
        _frame(lines),
        hide_index=True,
        width="stretch",
        height=_TABLE_PX,
        column_config=_columns(),
        selection_mode="single-row",
        on_select=choose,
        key=_TABLE_KEY,
    )


def request_field(view: View, lines: tuple[WorstLine, ...]) -> None:
    """The request that is shown below; any other id can be typed or pasted."""

    def choose() -> None:
        go_to(replace(view, request=st.session_state[_PICK_KEY] or None))

    names = {line.request: line for line in lines}
    place = place_of(lines, view.request)
    chosen = view.request if place is None else lines[place].request
    options = [*names, *([chosen] if chosen is not None and chosen not in names else [])]
    st.session_state[_PICK_KEY] = chosen
    st.selectbox(
        "Show the timeline of",
        options,
        key=_PICK_KEY,
        on_change=choose,
        accept_new_options=True,
        placeholder="choose a request, or paste an id",
        format_func=lambda request: _option(names.get(request), request),
    )


def _held(view: View, explanation: Explanation) -> View:
    """The view with its window held, so that the link of a request shows what surrounds it, too."""
    found = explanation.attribution.window
    named = replace(view, engine=explanation.engine)
    return named.with_window(found.start_ns, found.end_ns) if view.window is None and found is not None else named


def _option(line: WorstLine | None, request: str) -> str:
    """A request as the list names it."""
    if line is None:
        return request
    return line.name if line.ttft_ms is None else f"{line.name} ({line.ttft_ms:,.0f} ms)"


def _frame(lines: tuple[WorstLine, ...]) -> pd.DataFrame:
    """The table's columns."""
    rows = [
        (line.name, line.ttft_ms, line.arrived, line.prompt_tokens, line.output_tokens, line.state, line.number)
        for line in lines
    ]
    return pd.DataFrame(rows, columns=["request", "ttft", "arrived", "prompt", "output", "state", "id"])


def _columns() -> dict[str, ColumnConfig]:
    """Titles with units."""
    config = st.column_config
    return {
        "request": config.TextColumn("request"),
        "ttft": config.NumberColumn("time to first token, ms", format="%.1f"),
        "arrived": config.DatetimeColumn("arrived, UTC", format="MM-DD HH:mm:ss.SSS", timezone="UTC"),
        "prompt": config.NumberColumn("prompt, tokens"),
        "output": config.NumberColumn("output, tokens"),
        "state": config.TextColumn("outcome"),
        "id": config.TextColumn("id"),
    }
