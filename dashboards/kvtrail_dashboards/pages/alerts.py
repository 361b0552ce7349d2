"""What acts, and is it safe? Rules and their state, actions in force, and what happened; a person can end an action here."""

from functools import partial

import streamlit as st

from kvtrail_dashboards.compute.alerts import action_lines, alert_tiles, audit_lines, dead_lines, rule_lines
from kvtrail_dashboards.fetch_alerts import fetch_alerts, release_action
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.sections.frame import Frame, framed
from kvtrail_dashboards.sections.tables import Column, show_table
from kvtrail_dashboards.sections.text import plain
from kvtrail_dashboards.sections.tiles import tiles_section

_ACTION_PX = 190
"""Room for `limit_long_context(131072)`."""
_RULE_PX = 210
"""Room for `restore-slower-than-recompute`."""
_RULE_COLUMNS = (
    *(Column("rule", "rule"), Column("tier", "tier"), Column("state", "state"), Column("figure", "figure")),
    *(Column("raise_at", "fires at"), Column("clear_at", "ends at"), Column("severity", "severity")),
    *(Column("action", "action", width_px=_ACTION_PX), Column("meaning", "what the figure is")),
)
_AUDIT_COLUMNS = (
    *(Column("when", "when"), Column("what", "what"), Column("subject", "subject", width_px=_ACTION_PX)),
    *(Column("rule", "rule", width_px=_RULE_PX), Column("detail", "detail")),
)
_DEAD_COLUMNS = (
    Column("when", "when"),
    Column("target", "target"),
    Column("attempts", "attempts", "%d"),
    Column("reason", "why"),
)


def page() -> None:
    """Run the page once. On the session's thread; blocks while the collector answers."""
    framed(Place.ALERTS, _draw)


def _draw(frame: Frame) -> None:
    """What is in force first; then why."""
    engine, alerts = frame.engine.engine, fetch_alerts()
    tiles_section(alert_tiles(alerts, engine))
    st.subheader("Actions in force", anchor=False)
    actions = action_lines(alerts, engine)
    for line in actions:
        said, ended = st.columns([8, 2], vertical_alignment="center")
        (said.error if line.is_stalled else said.info)(plain(line.sentence))
        end = partial(release_action, engine, line.action)
        ended.button(f"End {line.action}", key=f"end-{line.action}", on_click=end, width="stretch")
    if not actions:
        st.caption("None.")
    st.subheader("Rules", anchor=False)
    rules = rule_lines(alerts, engine)
    show_table(rules, [column for column in _RULE_COLUMNS if any(getattr(rule, column.field) for rule in rules)])
    st.subheader("What happened", anchor=False)
    happened = audit_lines(alerts, engine)
    if happened:
        show_table(happened, _AUDIT_COLUMNS)
    else:
        st.caption("No rule has fired, and nobody has asked for an action.")
    dead = dead_lines(alerts, engine)
    if dead:
        st.subheader("Webhooks that were given up", anchor=False)
        show_table(dead, _DEAD_COLUMNS)
