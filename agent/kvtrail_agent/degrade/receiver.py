"""Who takes orders: by an endpoint, whose thread `kvtrail-degrade` answers, by a Kafka topic, or both. The same is believed by
either way, and what is over is ended in between.

```python
receiver = DegradeReceiver(DegradeSettings(engine="chat-1", secret_file=path, port=4760), engine_controls, recorder)
with receiver: ...
```
"""

from __future__ import annotations

import logging
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.degrade import DegradeControls
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.errors import OrderInvalid, SecretInvalid
from kvtrail_schema.reasons import ErrorReason
from kvtrail_schema.webhooks import ID_HEADER, read_secrets

from kvtrail_agent.degrade.book import Book, Held
from kvtrail_agent.degrade.judge import Judge, Judged, Verdict
from kvtrail_agent.degrade.server import Answer, Endpoint, Receive
from kvtrail_agent.degrade.settings import DegradeSettings, check_degrade_settings
from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.kafka_address import read_address

if TYPE_CHECKING:
    from kvtrail_agent.degrade.topic import OrderTopic

LOG: Final = logging.getLogger("kvtrail")
_REFUSALS_TOLD_A_MINUTE: Final = 30
_EXPIRE_S: Final = 0.2
_MINUTE_NS: Final = 60_000_000_000
_FIRST_EVENT: Final = 1 << 62
"""Ids of events that an agent draws: above all that engines count."""

_STATUS_OF: Final = {
    Verdict.SEEN: HTTPStatus.OK,
    Verdict.FORGED: HTTPStatus.UNAUTHORIZED,
    Verdict.OLD: HTTPStatus.BAD_REQUEST,
    Verdict.UNREADABLE: HTTPStatus.BAD_REQUEST,
    Verdict.EXPIRED: HTTPStatus.GONE,
    Verdict.OTHER_ENGINE: HTTPStatus.MISDIRECTED_REQUEST,
    Verdict.OUT_OF_ORDER: HTTPStatus.CONFLICT,
}


class ReceiverStatistics(NamedTuple):
    """What came in since the start."""

    carried_out: int
    refused: dict[str, int]
    """Orders that changed nothing, by why."""


class DegradeReceiver:
    """Takes orders for one engine. A context manager; every refusal changes nothing, and is told as an `error` event.

    Args:
        settings: where, and whose orders.
        controls: what the engine offers.
        emit: where events go; any thread may call it.
        clock: wall time for age and expiry; how long an action lasts is measured by the monotonic one.

    Raises:
        SettingsInvalid: the address, the topic or the secrets cannot be used.
    """

    def __init__(self, settings: DegradeSettings, controls: DegradeControls, emit: Emitter, clock: Clock | None = None) -> None:
        check_degrade_settings(settings)
        self._settings, self._emit, self._clock = settings, emit, clock or SystemClock()
        try:
            read_secrets(settings.secret_file)
        except SecretInvalid as error:
            raise SettingsInvalid(str(error)) from error
        self._lock = threading.Lock()
        self._judge = Judge(settings.engine, settings.oldest_s, self._clock.wall_ns())  # guarded by _lock
        self._book = Book(controls, emit, self._clock, _FIRST_EVENT)  # guarded by _lock
        self._carried_out = 0  # guarded by _lock
        self._refused: dict[str, int] = {}  # guarded by _lock
        self._told: list[int] = []  # guarded by _lock; when the last refusals were told
        self._topic = _topic_of(settings, self._receive)
        self._endpoint = Endpoint(settings.host, settings.port, self._receive) if settings.listens else None
        self._ending = threading.Event()
        self._expiring = threading.Thread(target=self._expire_all, name="kvtrail-degrade-expiry", daemon=True)

    @property
    def url(self) -> str:
        """Where orders are taken by HTTP; empty where they are not."""
        return "" if self._endpoint is None else self._endpoint.url

    def __enter__(self) -> Self:
        """Start to listen."""
        self._expiring.start()
        for way in (self._endpoint, self._topic):
            if way is not None:
                way.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more, and end every action."""
        for way in (self._endpoint, self._topic):
            if way is not None:
                way.close()
        self._ending.set()
        if self._expiring.ident is not None:
            self._expiring.join()
        with self._lock:
            self._book.release_all()

    def wait_until_heard(self, timeout_s: float) -> bool:
        """Wait until orders by topic are heard; at once where there is none. For whoever sends one next."""
        return self._topic is None or self._topic.is_heard.wait(timeout_s)

    def in_force(self) -> dict[str, Held]:
        """What is applied by order now. Any thread."""
        with self._lock:
            return self._book.in_force()

    def statistics(self) -> ReceiverStatistics:
        """What came in. Any thread."""
        with self._lock:
            return ReceiverStatistics(self._carried_out, dict(self._refused))

    def _receive(self, headers: dict[str, str], body: bytes) -> Answer:
        """One webhook."""
        try:
            secrets = read_secrets(self._settings.secret_file)
        except SecretInvalid as error:
            LOG.warning("kvtrail: no order can be taken: %s", error)
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "secrets cannot be read")
        with self._lock:
            now_wall_ns = self._clock.wall_ns()
            judged = self._judge.judge(secrets, headers, body, now_wall_ns)
            if judged.verdict is not Verdict.BELIEVED:
                return self._refuse(judged)
            return self._carry_out(headers[ID_HEADER], judged, now_wall_ns)

    def _carry_out(self, name: str, judged: Judged, now_wall_ns: int) -> Answer:
        """Do what is asked. An order that was not carried out is not remembered: it may come again."""
        assert judged.order is not None, judged
        try:
            self._book.carry_out(judged.order, now_wall_ns)
        except OrderInvalid as error:
            self._tell(f"degrade: cannot {judged.order.action}: {error}")
            return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except TimeoutError:
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "the engine did not come to it")
        self._judge.done(name, judged.order)
        self._carried_out += 1
        return Answer(HTTPStatus.OK, Verdict.BELIEVED.value)

    def _refuse(self, judged: Judged) -> Answer:
        """Change nothing, and say so."""
        name = judged.verdict.value
        self._refused[name] = self._refused.get(name, 0) + 1
        if judged.verdict is not Verdict.SEEN:
            about = (
                "" if judged.order is None else f", {judged.order.state.value} {judged.order.action} v{judged.order.version}"
            )
            self._tell(f"degrade: refused, {name}{about}")
        return Answer(_STATUS_OF[judged.verdict], name)

    def _tell(self, text: str) -> None:
        """An event, so that it is found in the audit; no more a minute than a forger cannot flood the stream with."""
        now_ns = self._clock.monotonic_ns()
        self._told = [told_ns for told_ns in self._told if now_ns - told_ns < _MINUTE_NS]
        if len(self._told) < _REFUSALS_TOLD_A_MINUTE:
            self._told.append(now_ns)
            self._emit.error(ErrorReason.PERMISSION, text=text)
        LOG.warning("kvtrail: %s", text)

    def _expire_all(self) -> None:
        """The life of a thread that ends what is over."""
        while not self._ending.wait(_EXPIRE_S):
            self._expire()

    def _expire(self) -> None:
        """End what is over."""
        with self._lock:
            self._book.expire()


def _topic_of(settings: DegradeSettings, receive: Receive) -> OrderTopic | None:
    """The topic that the settings name; the Kafka client is loaded only then.

    Raises:
        SettingsInvalid: it cannot be used.
    """
    if not settings.topic:
        return None
    address = read_address(settings.topic, TransportFiles(kafka_options_file=settings.kafka_options_file))
    from kvtrail_agent.degrade.topic import OrderTopic as Topic  # noqa: PLC0415 - loads the client

    return Topic(address, settings.engine, receive)
