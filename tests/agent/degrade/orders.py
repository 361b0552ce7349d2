"""A small language for tests of the endpoint: signed orders, sent as anybody could; controls that keep what was asked."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import msgspec
from kvtrail_schema.clock import Clock
from kvtrail_schema.degrade import ORDER_TYPE, Action, DegradeOrder, Desired, OrderBody, parse_action
from kvtrail_schema.errors import OrderInvalid
from kvtrail_schema.webhooks import Envelope, read_secrets, sign

ENGINE = "chat"
NS_S = 1_000_000_000


class Kept:
    """Controls of an engine that only remembers what is in force; it has no remote tier."""

    def __init__(self) -> None:
        self.in_force: list[str] = []
        self.asked: list[str] = []
        """Every action that it was asked to take, done or not."""
        self.is_stuck = False
        self.is_late = False
        """Does what it is asked, too late for whoever asked."""
        self.broken: str | None = None
        """An action that it cannot end, by a defect."""

    def apply(self, action: Action) -> None:
        """Remember it."""
        self.asked.append(str(action))
        if self.is_stuck:
            raise TimeoutError
        if action.tier == "remote":
            raise OrderInvalid("this engine has no tier remote")
        self.in_force.append(str(action))
        if self.is_late:
            raise TimeoutError

    def release(self, action: Action) -> None:
        """Forget it."""
        if self.is_stuck:
            raise TimeoutError
        if self.broken == str(action):
            message = "a defect of somebody else's"
            raise RuntimeError(message)
        self.in_force = [text for text in self.in_force if text != str(action)]


def secret_file(folder: Path, *fillings: bytes) -> Path:
    """A file with a secret for each filling, the newest first."""
    path = folder / "secrets"
    path.write_text("\n".join(f"whsec_{base64.b64encode(filling * 32).decode()}" for filling in fillings), encoding="ascii")
    path.chmod(0o600)
    return path


def order(
    text: str, clock: Clock, *, version: int, engine: str = ENGINE, seconds: int = 60, is_on: bool = True
) -> DegradeOrder:
    """An order that expires in so many seconds."""
    state = Desired.APPLIED if is_on else Desired.RELEASED
    return DegradeOrder(engine, parse_action(text), state, version, clock.wall_ns() + seconds * NS_S, "a-rule")


class Sender:
    """Signs orders with the secrets in a file, and sends them."""

    def __init__(self, url: str, secrets: Path, clock: Clock) -> None:
        self.url, self.secrets, self.clock = url, secrets, clock

    def send(self, what: DegradeOrder, name: str = "msg_1", *, sent_s: int | None = None) -> httpx.Response:
        """One order, sent now unless another moment is given."""
        body, headers = self.signed(what, name, sent_s=sent_s)
        return self.send_raw(body, headers)

    def signed(self, what: DegradeOrder, name: str = "msg_1", *, sent_s: int | None = None) -> tuple[bytes, dict[str, str]]:
        """A webhook, ready to be sent, by anybody who has it."""
        body = msgspec.json.encode(OrderBody(ORDER_TYPE, "2026-01-01T00:00:00Z", what))
        at_s = self.clock.wall_ns() // NS_S if sent_s is None else sent_s
        return body, sign(read_secrets(self.secrets), Envelope(name, at_s), body)

    def send_raw(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """These very bytes, under these headers."""
        return httpx.post(self.url, content=body, headers=headers, timeout=5.0, trust_env=False)
