"""What is asked and wished over HTTP: published shapes, who may, and that no web page of somebody else can wish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from kvtrail_collector.alerts.shapes import Alerts
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY
from kvtrail_collector.testing import running_collector

from tests.agent.degrade.orders import ENGINE, secret_file
from tests.collector.alerts.stories import until
from tests.collector.frames import batch

TOKENS = ("write", "read", "control")
TARGET = """
[[target]]
name = "nobody-there"
url = "http://127.0.0.1:9/v1/degrade"
secret_file = "{secret}"
engines = ["chat", "gone"]
"""
WISH = {"engine": ENGINE, "action": "stop_prefetch", "seconds": 60}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of a collector that wants a token for each scope."""
    files: dict[str, Any] = {}
    for scope in TOKENS:
        path = tmp_path / scope
        path.write_text(f"{scope}-0123456789abcdef", encoding="utf-8")
        path.chmod(0o600)
        files[f"{scope}_token_file"] = str(path)
    alerts = tmp_path / "alerts.toml"
    alerts.write_text(TARGET.format(secret=secret_file(tmp_path, b"a")), encoding="utf-8")
    with (
        running_collector(Settings(store=MEMORY, port=0, alerts_file=str(alerts), **files)) as running,
        httpx.Client(base_url=running.url, trust_env=False) as speaking,
    ):
        for engine in (ENGINE, "nobodys"):
            running.store.submit(batch([1], engine=engine)).result(10)
        yield speaking


def bearing(scope: str) -> dict[str, str]:
    """The header of somebody who has the token of a scope."""
    return {"authorization": f"Bearer {scope}-0123456789abcdef"}


def ask(client: httpx.Client) -> Alerts:
    """What is so now."""
    answer = client.get("/v1/alerts", headers=bearing("read"))
    return msgspec.json.decode(answer.raise_for_status().content, type=Alerts)


def test_a_wish_is_in_force_until_it_is_released(client: httpx.Client) -> None:
    """Asked for and released, both in the audit, in the shape that is published."""
    assert client.post("/v1/actions/request", json=WISH, headers=bearing("control")).json()["changed"]
    (action,) = ask(client).actions
    assert (ENGINE, "stop_prefetch", "requested") == (action.engine, action.action, action.effect)
    assert client.post("/v1/actions/release", json=WISH, headers=bearing("control")).json()["changed"]

    until(lambda: len(ask(client).audit) >= 2)  # it is written down soon, not at once
    found = ask(client)
    assert () == found.actions
    assert ["released_by_hand", "requested_by_hand"] == [row.what for row in found.audit if row.what.endswith("_by_hand")]
    assert {"prefetch-waste", "events-lost"} <= {rule.name for rule in found.rules}


def test_releasing_what_is_not_in_force_changes_nothing(client: httpx.Client) -> None:
    """It is said so."""
    assert not client.post("/v1/actions/release", json=WISH, headers=bearing("control")).json()["changed"]


@pytest.mark.parametrize("scope", ["read", "write"])
@pytest.mark.parametrize("verb", ["request", "release"])
def test_only_the_token_for_control_may_wish(client: httpx.Client, scope: str, verb: str) -> None:
    """Who may look or send may not change what runs."""
    assert 403 == client.post(f"/v1/actions/{verb}", json=WISH, headers=bearing(scope)).status_code
    assert 401 == client.post(f"/v1/actions/{verb}", json=WISH).status_code
    assert () == ask(client).actions


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"engine":"chat","action":"stop_prefetch"}', "text/plain", 415),
        (b'{"engine":"chat","action":"reboot"}', "application/json", 422),
        (b'{"engine":"","action":"stop_prefetch"}', "application/json", 422),
        (b'{"engine":"chat","action":"stop_prefetch","seconds":1e9}', "application/json", 422),
        (b'{"engine":"chat"}', "application/json", 422),
        (b"x" * 5_000, "application/json", 422),
    ],
)
def test_what_is_no_wish_is_refused(client: httpx.Client, body: bytes, kind: str, status: int) -> None:
    """A form of another page is no JSON; an action that is none, no engine, no end, too long."""
    headers = {**bearing("control"), "content-type": kind}

    assert status == client.post("/v1/actions/request", content=body, headers=headers).status_code
    assert () == ask(client).actions


@pytest.mark.parametrize(
    ("engine", "status", "advice"), [("gone", 404, "name one that is: chat"), ("nobodys", 422, "[[target]]")]
)
def test_a_wish_that_can_reach_nobody_is_refused(client: httpx.Client, engine: str, status: int, advice: str) -> None:
    """An engine of whom nothing was heard, or to whom no target leads: it is said what to do, and nothing is in force."""
    answer = client.post("/v1/actions/request", json={**WISH, "engine": engine}, headers=bearing("control"))

    assert status == answer.status_code
    assert advice in answer.json()["error"]["do"]
    assert () == ask(client).actions
