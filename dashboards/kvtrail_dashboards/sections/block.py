"""The life of one block: where its copies were, and what took them away."""

from dataclasses import replace

import streamlit as st

from kvtrail_dashboards.charts.spans import spans_chart
from kvtrail_dashboards.compute.block import BlockView, block_view
from kvtrail_dashboards.errors import CollectorError
from kvtrail_dashboards.fetch_pages import fetch_block
from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import EngineRow
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_error
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain

_KEY = "block"


def block_section(view: View, engine: EngineRow) -> None:
    """A field for a block's hash, and its life where one is given."""

    def choose() -> None:
        go_to(replace(view, block=str(st.session_state[_KEY]).strip() or None))

    st.subheader("Life of a block", anchor=False)
    st.session_state[_KEY] = view.block or ""
    st.text_input("Hash of the block, as events have it", key=_KEY, on_change=choose, placeholder="paste a hash")
    if view.block is None:
        return
    try:
        _show(view, block_view(fetch_block(engine.engine, view.block), engine))
    except CollectorError as error:
        show_error(error)


def _show(view: View, block: BlockView) -> None:
    """Copies as bars, and the chain of what happened to them."""
    if block.spans:
        st.altair_chart(spans_chart(block.spans), width="stretch", key="chart-block")
    else:
        st.caption("No copy of it is known.")
    if block.more:
        st.caption(f"The newest {len(block.spans):,} copies; {block.more:,} older ones are not shown.")
    if block.holes:
        st.warning(f"In {block.holes:,} stretches of time the record has holes: there nobody knows where it was.")
    if block.chain:
        with st.expander(f"What happened to it: {len(block.chain):,} events"), st.container(gap=None):
            _chain(view, block)


def _chain(view: View, block: BlockView) -> None:
    """Event by event; each leads to itself in full."""
    for link in block.chain:
        if link.name:
            link_to(Place.REQUEST, plain(link.label), replace(view.about(), event=link.name))
        else:
            st.markdown(plain(link.label))
