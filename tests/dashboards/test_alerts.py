"""The page of alerts, before a real collector: what it shows, and that a person ends an action there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from kvtrail_collector.settings import Settings as CollectorSettings
from kvtrail_collector.store import MEMORY
from kvtrail_collector.testing import running_collector
from kvtrail_dashboards.alert_answers import ActionNow, AlertNow, Alerts, RuleNow
from kvtrail_dashboards.client import CollectorClient
from kvtrail_dashboards.compute.alerts import action_lines, alert_tiles, rule_lines
from kvtrail_dashboards.compute.now import Mood
from kvtrail_dashboards.errors import AccessRefused
from kvtrail_dashboards.fetch import forget
from kvtrail_dashboards.places import Place
from kvtrail_dashboards.settings import COLLECTOR_URL, CONTROL_TOKEN_FILE, DEFAULT_URL, Settings, load_settings
from kvtrail_schema.batch import CONTENT_TYPE

from tests.agent.degrade.orders import secret_file
from tests.collector.frames import frame, span
from tests.dashboards.open_app import app_of, button, said

TARGET = """
[[target]]
name = "nobody-there"
url = "http://127.0.0.1:9/v1/degrade"
secret_file = "{secret}"
"""
WISH = {"engine": "engine", "action": "stop_prefetch", "seconds": 60}
CONTROL = "control-0123456789abcdef"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """A collector that wants a token for control, with one engine, and an action in force; its address."""
    path = tmp_path / "control"
    path.write_text(CONTROL, encoding="utf-8")
    path.chmod(0o600)
    alerts = tmp_path / "alerts.toml"
    alerts.write_text(TARGET.format(secret=secret_file(tmp_path, b"a")), encoding="utf-8")
    given = CollectorSettings(store=MEMORY, port=0, control_token_file=str(path), alerts_file=str(alerts))
    with running_collector(given) as running:
        with httpx.Client(base_url=running.url, trust_env=False) as client:
            client.post("/v1/events", content=frame(span(1, 80)), headers={"content-type": CONTENT_TYPE}).raise_for_status()
            bearing = {"authorization": f"Bearer {CONTROL}"}
            client.post("/v1/actions/request", json=WISH, headers=bearing).raise_for_status()
        yield running.url


def test_a_person_ends_an_action_on_the_page(guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown with its end; a click releases it, and the audit says by whom."""
    monkeypatch.setenv(COLLECTOR_URL, guarded)
    monkeypatch.setenv(CONTROL_TOKEN_FILE, str(tmp_path / "control"))
    forget()
    page = app_of(Place.ALERTS).run()
    assert "stop_prefetch: requested, ends in" in said(page)
    button(page, "End stop_prefetch").click().run()

    assert "stop_prefetch: requested" not in said(page)
    with CollectorClient(load_settings({COLLECTOR_URL: guarded})) as client:
        by_hand = [row.what for row in client.alerts().audit if row.what.endswith("_by_hand")]

    assert ["released_by_hand", "requested_by_hand"] == by_hand


def test_without_the_token_for_control_nothing_is_ended(guarded: str) -> None:
    """The reader is told which file to name, and the action stays."""
    with CollectorClient(Settings(guarded)) as client:
        with pytest.raises(AccessRefused, match=CONTROL_TOKEN_FILE):
            client.release("engine", "stop_prefetch")

        assert 1 == len(client.alerts().actions)


def test_what_is_shown_is_the_engines_own(guarded: str) -> None:
    """Another engine's actions are none of this page's; each rule that is on has a line."""
    with CollectorClient(Settings(guarded)) as client:
        alerts = client.alerts()

    assert (1, 0) == (len(action_lines(alerts, "engine")), len(action_lines(alerts, "other")))
    assert {rule.name for rule in alerts.rules} == {line.rule for line in rule_lines(alerts, "engine")}
    assert ["0", "1", "0"] == [tile.value for tile in alert_tiles(alerts, "engine")]


def test_a_rule_that_knows_nothing_is_not_green() -> None:
    """None fires of two, but one has no figure: that is said, and is no good news."""
    quiet = rule("queue_depth", 64.0, 16.0, AlertNow("engine", "nvme", "quiet", 1.0))
    blind = rule("free_bytes", 1.0, 2.0)
    known, unknown = (alert_tiles(Alerts(0, rules), "engine")[0] for rules in ((quiet,), (quiet, blind)))

    assert (Mood.GOOD, "none, of 1 rules") == (known.mood, known.detail)
    assert (Mood.PLAIN, "none, of 2 rules, of which 1 have no figure") == (unknown.mood, unknown.detail)
    assert ["quiet", "no figure"] == [line.state for line in rule_lines(Alerts(0, (blind, quiet)), "engine")]


@pytest.mark.parametrize(
    ("alerts", "moods", "webhooks"),
    [
        (Alerts(0), [Mood.PLAIN] * 3, "no target is named"),
        (Alerts(0, targets=("agent",)), [Mood.PLAIN, Mood.PLAIN, Mood.GOOD], "of the last hundred"),
        (Alerts(0, actions=(ActionNow("engine", "recompute", 1, "shown"),)), [Mood.PLAIN, Mood.GOOD, Mood.PLAIN], None),
    ],
    ids=["nothing", "a target", "an action"],
)
def test_of_nothing_that_none_is_bad_is_not_green(alerts: Alerts, moods: list[Mood], webhooks: str | None) -> None:
    """No rule, no action in force, nobody to tell: there is nothing that was looked at and is well."""
    tiles = alert_tiles(alerts, "engine")

    assert moods == [tile.mood for tile in tiles]
    assert webhooks in {None, tiles[2].detail}


def test_actions_have_room(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser makes a column as wide as its first ten rows need, and cut what `disable_tier(remote)` disables below them."""
    monkeypatch.setenv(COLLECTOR_URL, guarded)
    forget()
    rules, audit = (json.loads(table.proto.columns) for table in app_of(Place.ALERTS).run().dataframe)

    assert rules["action"]["width"] >= 7 * len("limit_long_context(131072)")
    assert audit["subject"]["width"] >= 7 * len("limit_long_context(131072)")
    assert audit["rule"]["width"] >= 7 * len("restore-slower-than-recompute")


def rule(measure: str, raise_at: float, clear_at: float, *alerts: AlertNow) -> RuleNow:
    """A rule that is on."""
    return RuleNow(measure, measure, "", raise_at, clear_at, severity="info", action="", is_on=True, alerts=alerts)


def test_figures_of_rules_have_their_units() -> None:
    """Bytes are told as sizes, shares as percent, counts as they are, and what nobody has seen as nothing."""
    seen = AlertNow("engine", "nvme", "firing", 536_870_912.0)
    space = rule("free_bytes", 1_073_741_824.0, 4_294_967_296.0, seen)
    rules = space, rule("prefetch_waste_share", 0.5, 0.3), rule("queue_depth", 64.0, 16.0)
    lines = rule_lines(Alerts(0, rules), "engine")

    wanted = [("512 MiB", "1.0 GiB", "4.0 GiB"), ("", "50 %", "30 %"), ("", "64", "16")]
    assert wanted == [(line.figure, line.raise_at, line.clear_at) for line in lines]


def test_the_control_token_is_not_shown(tmp_path: Path) -> None:
    """A repr, as logs have it, tells no token."""
    path = tmp_path / "control"
    path.write_text(CONTROL, encoding="utf-8")
    path.chmod(0o600)

    assert CONTROL not in repr(load_settings({COLLECTOR_URL: DEFAULT_URL, CONTROL_TOKEN_FILE: str(path)}))
