"""Whether an order is believed: signature, age, expiry, engine, then whether it is new and in order.

An order is remembered only once its signature holds, so a forger can fill nothing. What was signed before this process listened
is refused as old: so what was seen before a restart is not believed again after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from kvtrail_schema.degrade import DegradeOrder, read_order
from kvtrail_schema.errors import OrderInvalid
from kvtrail_schema.webhooks import Envelope, Refusal, Secrets, verify

_NS_S: Final = 1_000_000_000
_MOST_IDS: Final = 4_096
_AHEAD_S: Final = 5
"""How far the sender's clock may be ahead."""


class Verdict(Enum):
    """What becomes of an order."""

    BELIEVED = "believed"
    SEEN = "seen"
    """This very order was carried out already: answered well, and not done again."""
    FORGED = "forged"
    OLD = "old"
    EXPIRED = "expired"
    OTHER_ENGINE = "other_engine"
    OUT_OF_ORDER = "out_of_order"
    UNREADABLE = "unreadable"


class Judged(NamedTuple):
    """A verdict, and the order where it can be read and is signed."""

    verdict: Verdict
    order: DegradeOrder | None = None


class Judge:
    """Used under the lock of the receiver. Remembers the last ids, and the newest version."""

    def __init__(self, engine: str, oldest_s: int, started_wall_ns: int) -> None:
        self._engine, self._oldest_s = engine, oldest_s
        self._started_s = started_wall_ns // _NS_S
        self._seen: OrderedDict[str, DegradeOrder] = OrderedDict()
        self._newest_version = 0

    def judge(self, secrets: Secrets, headers: Mapping[str, str], body: bytes, now_wall_ns: int) -> Judged:
        """What becomes of a webhook. Changes nothing: `done` remembers it."""
        envelope = verify(secrets, headers, body)
        if isinstance(envelope, Refusal):
            return Judged(Verdict.FORGED if envelope is Refusal.SIGNATURE else Verdict.UNREADABLE)
        if not self._is_of_now(envelope, now_wall_ns // _NS_S):
            return Judged(Verdict.OLD)
        try:
            order = read_order(body)
        except OrderInvalid:
            return Judged(Verdict.UNREADABLE)
        return Judged(self._verdict_on(envelope, order, now_wall_ns), order)

    def done(self, name: str, order: DegradeOrder) -> None:
        """An order was carried out."""
        self._newest_version = max(self._newest_version, order.version)
        self._seen[name] = order
        if len(self._seen) > _MOST_IDS:
            self._seen.popitem(last=False)

    def _is_of_now(self, envelope: Envelope, now_s: int) -> bool:
        """Whether it was sent lately, to this very process, and not in the future."""
        return max(self._started_s, now_s - self._oldest_s) <= envelope.sent_s <= now_s + _AHEAD_S

    def _verdict_on(self, envelope: Envelope, order: DegradeOrder, now_wall_ns: int) -> Verdict:
        """What becomes of an order that is signed and of now."""
        if order.engine != self._engine:
            return Verdict.OTHER_ENGINE
        if envelope.id in self._seen:
            return Verdict.SEEN if self._seen[envelope.id] == order else Verdict.OUT_OF_ORDER
        if order.expires_wall_ns <= now_wall_ns:
            return Verdict.EXPIRED
        return Verdict.BELIEVED if order.version > self._newest_version else Verdict.OUT_OF_ORDER
