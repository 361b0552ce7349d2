"""Webhooks go where the operator's file says, in no other way and nowhere else."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from kvtrail_collector.alerts.attempt import Outcome
from kvtrail_collector.alerts.bodies import alert_body, manager_body, template_body
from kvtrail_collector.alerts.evaluate import AlertKey, Change
from kvtrail_collector.alerts.file import DEFAULT_RULES, load_alerts
from kvtrail_collector.alerts.measures import MEASURES
from kvtrail_collector.alerts.post import make_post
from kvtrail_collector.alerts.state import Turn
from kvtrail_collector.alerts.targets import AddressRefused, Form, Target, address_of
from kvtrail_collector.errors import SettingsInvalid
from kvtrail_schema.degrade import DegradeOrder, Desired, parse_action
from kvtrail_schema.webhooks import Envelope, Refusal, Secrets, sign, verify

from tests.agent.degrade.orders import secret_file
from tests.collector.alerts.stories import rule

NS_S = 1_000_000_000
ORDER = DegradeOrder("chat", parse_action("gpu_only"), Desired.APPLIED, 7, 1, 'a"rule')


def to(host: str, **more: Any) -> Target:
    """A target on a host."""
    return Target(name="t", url=f"https://{host}/hook", form=Form.ALERTS, **more)


def known(*addresses: str) -> Any:
    """A resolver that gives these addresses for every name."""

    def look_up(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return look_up


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "224.0.0.1",
        "0.0.0.0",  # noqa: S104 - that it is refused is the point
        "::",
        "127.0.0.1",
        "::1",
        "::ffff:169.254.169.254",
        "::ffff:127.0.0.1",
    ],
)
def test_a_name_that_leads_where_nobody_means_to_call_is_refused(address: str) -> None:
    """The clouds' address of credentials, multicast, any, and this machine under another name; also beside a good address."""
    with pytest.raises(AddressRefused):
        address_of(to("hooks.example"), known("192.0.2.7", address))


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("localhost", "::1"), ("in.example", "10.0.0.3")])
def test_what_the_operator_named_is_called(host: str, address: str) -> None:
    """This machine under its own names, and machines inside."""
    assert address == address_of(to(host), known(address))


@pytest.mark.parametrize("error", [socket.gaierror(socket.EAI_AGAIN, "try again"), OSError("no network")])
def test_a_name_that_cannot_be_looked_up_now_is_tried_again(error: OSError) -> None:
    """Name servers are away now and then; what waits for them is no dead letter."""

    def look_up(_host: str, _port: int) -> Sequence[str]:
        raise error

    assert Outcome.AGAIN is make_post(look_up)(to("hooks.example"), Envelope("msg_1", 5), b"{}").outcome


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n"])
def test_an_attempt_ends_with_its_time_though_the_answer_trickles(start: bytes) -> None:
    """A byte now and then, of the head or the body, keeps no thread for longer than the target's timeout."""
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            """Answer, as slowly as can be."""
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(start)
                for _ in range(100):
                    connection.sendall(b"x")
                    if is_over.wait(0.05):
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        target = Target(name="t", url=f"http://127.0.0.1:{listening.getsockname()[1]}/", form=Form.ALERTS, timeout_s=0.3)
        began_s = time.monotonic()
        make_post()(target, Envelope("msg_1", 5), b"{}")
        took_s = time.monotonic() - began_s
        is_over.set()
        thread.join()

    assert took_s < 2.0


@contextmanager
def server(status: int, location: str = "") -> Iterator[tuple[int, list[tuple[str, dict[str, str], bytes]]]]:
    """A server that answers every call so, and what it was sent."""
    calls: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        """Keeps the call."""

        def do_POST(self) -> None:
            """Answer."""
            body = self.rfile.read(int(self.headers["content-length"]))
            calls.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made.server_address[1], calls
        finally:
            made.shutdown()
            thread.join()


def test_a_name_is_looked_up_once(tmp_path: Path) -> None:
    """The address that was checked is the one that is called, under the target's name, signed."""
    secrets = secret_file(tmp_path, b"a", b"b")
    with server(200) as (port, calls):
        target = Target(name="t", url=f"http://localhost:{port}/hook", secret_file=str(secrets))
        attempt = make_post(known("127.0.0.1"))(target, Envelope("msg_1", 5), b"{}")

    ((path, headers, body),) = calls
    assert (Outcome.DELIVERED, "/hook", f"localhost:{port}") == (attempt.outcome, path, headers["host"])
    assert Envelope("msg_1", 5) == verify(Secrets((b"b" * 32,)), headers, body)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(204, Outcome.DELIVERED), (302, Outcome.REFUSED), (401, Outcome.REFUSED), (429, Outcome.AGAIN), (503, Outcome.AGAIN)],
)
def test_what_an_answer_means(status: int, outcome: Outcome) -> None:
    """Busy and broken servers are tried again; a redirect is followed nowhere."""
    with server(200) as (inside, reached), server(status, f"http://127.0.0.1:{inside}/") as (port, _):
        target = Target(name="t", url=f"http://127.0.0.1:{port}/", form=Form.ALERTS)

        assert outcome is make_post()(target, Envelope("msg_1", 5), b"{}").outcome
        assert [] == reached


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the specification's reference libraries."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    headers = sign(Secrets((key,)), Envelope("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330), body)

    assert "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" == headers["webhook-signature"]
    assert Refusal.SIGNATURE is verify(Secrets((key,)), headers, body + b" ")


def test_values_in_a_template_cannot_break_out_of_it() -> None:
    """Each is written as JSON writes it, in one pass."""
    body = template_body('{"what": $action, "why": $rule, "n": $version, "price": "$5"}', ORDER)

    assert {"what": "gpu_only", "why": 'a"rule', "n": 7, "price": "$5"} == json.loads(body)


def test_alertmanager_reads_what_is_sent() -> None:
    """Version 4 of its webhooks: status, labels, and times of the alert."""
    change = Change(rule(), AlertKey("waste", "chat", "nvme"), Turn.CLEARED, 0.25)
    sent = json.loads(manager_body(change, "people", 1_000 * NS_S, 1_060 * NS_S))
    (alert,) = sent["alerts"]

    assert (
        {"alertname": "waste", "engine": "chat", "severity": "warning", "tier": "nvme"}
        == alert["labels"]
        == sent["commonLabels"]
    )
    assert ("4", "resolved", "resolved", "people") == (sent["version"], sent["status"], alert["status"], sent["receiver"])
    assert ("1970-01-01T00:16:40.000Z", "1970-01-01T00:17:40.000Z") == (alert["startsAt"], alert["endsAt"])
    assert {"groupKey", "truncatedAlerts", "groupLabels", "commonAnnotations", "externalURL"} <= sent.keys()
    assert "resolved" == json.loads(alert_body(change, 0))["data"]["state"]


def test_shipped_rules_are_whole() -> None:
    """They can be read, and every measure but a verdict, which needs a code, has a rule or is a plain count for people."""
    shipped = load_alerts(None)
    without = set(MEASURES) - {each.measure for each in shipped.rules}

    assert {"verdict", "pinned_bytes", "dropped_events"} == without
    assert DEFAULT_RULES.exists()


def test_an_own_file_adds_to_shipped_rules(tmp_path: Path) -> None:
    """A rule of the same name takes the place of the shipped one."""
    path = tmp_path / "alerts.toml"
    path.write_text('[[rule]]\nname = "thrash"\nmeasure = "thrash_share"\nraise = 0.9\nclear = 0.1\n', encoding="utf-8")
    rules = {each.name: each for each in load_alerts(path).rules}

    assert 0.9 == rules["thrash"].raise_at
    assert len(load_alerts(None).rules) == len(rules)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[rule]]\nname = "a"\nmeasure = "thrash_share"\nraise = 1.0\nclear = 1.0', "flap"),
        ('[[rule]]\nname = "a"\nmeasure = "luck"\nraise = 1.0\nclear = 0.0', "no measure"),
        ('[[rule]]\nname = "a"\nmeasure = "thrash_share"\nraise = 1.0\nclear = 0.0\naction = "reboot"', "no action"),
        ('[[rule]]\nname = "a"\nmeasure = "verdict"\nraise = 1.0\nclear = 0.0', "code"),
        ('[[target]]\nname = "a"\nurl = "http://hooks.example/"\nform = "alerts"', "in clear"),
        ('[[target]]\nname = "a"\nurl = "https://user:pw@hooks.example/"\nform = "alerts"', "no address"),
        ('[[target]]\nname = "a"\nurl = "https://user:pw@[hooks.example/"\nform = "alerts"', "no address"),
        ('[[target]]\nname = "a"\nurl = "file:///etc/passwd"\nform = "alerts"', "no address"),
        ('[[target]]\nname = "a"\nurl = "https://hooks.example/"', "signed"),
        ("[[rules]]", "rules"),
    ],
)
def test_what_cannot_work_is_refused_at_start(tmp_path: Path, text: str, problem: str) -> None:
    """With the file, the rule or target, and what is wrong."""
    path = tmp_path / "alerts.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsInvalid, match=problem) as refused:
        load_alerts(path)
    assert "pw" not in str(refused.value)
