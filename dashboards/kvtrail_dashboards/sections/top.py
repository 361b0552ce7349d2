"""The head of the page: its question, the engine, the device's label, and the button that asks again."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kvtrail_dashboards.fetch import Explanation, forget
from kvtrail_dashboards.link import View
from kvtrail_dashboards.sections.steer import go_to
from kvtrail_dashboards.sections.text import plain

_ENGINE_KEY = "engine-choice"


def title_section() -> DeltaGenerator:
    """Title and button, drawn before anything is asked; gives the place for the labels, which are known later."""
    title, labels, refresh = st.columns([5, 3, 1], vertical_alignment="center")
    title.title("Why was it slow?", anchor=False)
    refresh.button("Refresh", on_click=forget, width="stretch")
    return labels


def labels_section(place: DeltaGenerator, explanation: Explanation) -> None:
    """Which engine this is about, and on what it ran."""
    told = [] if len(explanation.engines) > 1 else [f"engine **{plain(explanation.engine)}**"]
    if explanation.device is not None:
        told.append(f":gray-badge[{plain(explanation.device)}]")
    with place:
        if len(explanation.engines) > 1:
            _engine_choice(explanation)
        st.markdown(" ".join(told))


def _engine_choice(explanation: Explanation) -> None:
    """A choice of engines; another engine has other windows and requests, so those are dropped from the link."""

    def choose() -> None:
        go_to(View(engine=st.session_state[_ENGINE_KEY]))

    st.session_state[_ENGINE_KEY] = explanation.engine
    st.selectbox("Engine", explanation.engines, key=_ENGINE_KEY, on_change=choose, label_visibility="collapsed")
