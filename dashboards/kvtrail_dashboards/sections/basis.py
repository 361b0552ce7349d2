"""How an explanation was found: for whoever doubts it."""

import streamlit as st

from kvtrail_dashboards.compute.basis import basis_lines, command_of
from kvtrail_dashboards.compute.wall import wall_time
from kvtrail_dashboards.fetch import Explanation
from kvtrail_dashboards.sections.text import plain


def basis_section(explanation: Explanation) -> None:
    """Closed until somebody asks; nothing where nothing was compared."""
    attribution = explanation.attribution
    lines = basis_lines(attribution, wall_time(explanation.series))
    if not lines:
        return
    with st.expander("How this was found"):
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))
        st.caption("The same answer in a terminal, where the figures of every component stand, too:")
        st.code(command_of(attribution, explanation.engine), language=None)
