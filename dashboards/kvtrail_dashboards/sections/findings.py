"""What is wrong, as cards: the spike with its time, what rules find, and words where they find nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from kvtrail_dashboards.compute.findings import MAX_VERDICTS, Stretch, VerdictLine, nothing_found, rule_lines
from kvtrail_dashboards.compute.names import Names
from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import Missing, Verdicts
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.nav import link_to
from kvtrail_dashboards.sections.notice import show_notice
from kvtrail_dashboards.sections.text import plain

_FURTHER: Final = ":material/arrow_forward:"
_BAD: Final = ":red[:material/error:]"
_ELSEWHERE: Final = ":gray[:material/history:]"
_BEGINNING: Final = {
    Stretch.WITHIN: "",
    Stretch.EARLIER: "Earlier than the time shown: ",
    Stretch.LATER: "Later than the time shown: ",
}


def cards(view: View, lines: Sequence[VerdictLine]) -> None:
    """The gravest as cards, the others behind a click, where they are counted."""
    for line in lines[:MAX_VERDICTS]:
        _card(view, line)
    others = lines[MAX_VERDICTS:]
    if others:
        with st.expander(f"{len(others)} more"):
            for line in others:
                _card(view, line)


def rules_section(view: View, verdicts: Verdicts, names: Names) -> None:
    """What rules find, or what it says that they find nothing; and what they could not look at."""
    lines = rule_lines(verdicts.verdicts, names)
    cards(view, lines)
    if not lines:
        show_notice(nothing_found(verdicts))
    if verdicts.missing:
        with st.expander(f"What could not be looked at ({len(verdicts.missing)})"):
            st.markdown("\n".join(f"- {_missing(one)}" for one in verdicts.missing))


def _missing(one: Missing) -> str:
    """One kind of event, or field, that never came."""
    return f"`{one.kind or one.field or ''}`: {plain(one.so_what)}"


def _card(view: View, line: VerdictLine) -> None:
    """One verdict, and the link to the spike, or to the event, that it is about."""
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown("  \n".join(_said(line)))
        if line.window is not None:
            link_to(Place.SPIKE, "Explain this spike", view.with_window(*line.window), icon=_FURTHER)
        elif line.event is not None:
            link_to(Place.REQUEST, "See it happen", replace(view, event=line.event), icon=_FURTHER)


def _said(line: VerdictLine) -> list[str]:
    """The lines of a card: red only where it is about the time that is shown."""
    where = f" :gray[{plain(line.where)}]" if line.where else ""
    sign = _BAD if line.stretch is Stretch.WITHIN else _ELSEWHERE
    said = [f"{sign} `{line.code}`{where} **{plain(_BEGINNING[line.stretch] + line.headline)}**"]
    said += [plain(f"{line.when}.")] if line.when else []
    said += [plain(f"{line.figures[:1].upper()}{line.figures[1:]}.")] if line.figures else []
    return [*said, f"What to do: {plain(line.action)} :gray[{plain(line.sure)}]" if line.action else plain(line.sure)]
