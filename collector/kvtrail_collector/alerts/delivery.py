"""The thread `kvtrail-webhooks`: one queue an engine and target, in order, each head tried until it is taken or too late."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Self

from kvtrail_schema.clock import Clock
from kvtrail_schema.webhooks import Envelope

from kvtrail_collector.alerts.attempt import Attempt, Outcome
from kvtrail_collector.alerts.post import Post
from kvtrail_collector.alerts.targets import Target

MOST_WAITING: Final = 256
"""Webhooks of one queue; one more pushes out the oldest, as a dead letter."""

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 10.0
_AT_ONCE: Final = 32
_AT_ONCE_A_TARGET: Final = 2
"""So that sixteen targets may hang before anybody else waits."""
_NS_S: Final = 1_000_000_000
_IDLE_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


class Outgoing(NamedTuple):
    """A webhook on its way. The same `id` on every attempt; after `expires_wall_ns` it must not arrive any more."""

    id: str
    engine: str
    subject: str
    """Of two with the same subject only the newer one matters; empty: all do."""
    body: bytes
    expires_wall_ns: int
    is_told: bool = True
    """Whether it is written down that it was delivered; that one was given up always is."""


class Ended(NamedTuple):
    """A webhook that was delivered, or is given up (a dead letter)."""

    target: Target
    item: Outgoing
    outcome: Outcome
    attempts: int
    detail: str


@dataclass(slots=True)
class _Queue:
    """What goes to one target about one engine. Guarded by the lock of `Delivery`."""

    target: Target
    waiting: deque[Outgoing]
    attempts: int = 0
    not_before_ns: int = 0
    begun_ns: int = 0
    """When its last attempt began."""
    under_way: Future[None] | None = None
    last: str = "never tried"


class Delivery:
    """Delivers in order, engine by engine; a target that hangs has two attempts under way and holds up nobody else's. A context
    manager.
    """

    def __init__(self, post: Post, clock: Clock, ended: Callable[[Ended], None], random: Random | None = None) -> None:
        self._post, self._clock, self._ended = post, clock, ended
        self._random = random or Random()  # noqa: S311 - jitter is no secret
        self._wake = threading.Condition()
        self._queues: dict[tuple[str, str], _Queue] = {}  # guarded by _wake
        self._under_way: Counter[str] = Counter()  # attempts by target; guarded by _wake
        self._is_closing = False  # guarded by _wake
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="kvtrail-webhook")
        self._thread = threading.Thread(target=self._run, name="kvtrail-webhooks", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it, after the attempts that are under way; what waits is given up and told."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join()
        self._pool.shutdown()
        for queue in self._queues.values():
            for item in queue.waiting:
                self._tell(queue, item, Outcome.REFUSED, "the collector ended")

    def put(self, target: Target, item: Outgoing) -> None:
        """Queue a webhook. Any thread; never blocks. It takes the place of what it makes needless."""
        with self._wake:
            queue = self._queues.setdefault((target.name, item.engine), _Queue(target, deque()))
            head = [queue.waiting.popleft()] if queue.under_way is not None and queue.waiting else []
            needless = [old for old in queue.waiting if item.subject and old.subject == item.subject]
            for old in needless:
                queue.waiting.remove(old)
            dropped = [queue.waiting.popleft()] if len(queue.waiting) >= MOST_WAITING else []
            queue.waiting.extendleft(head)
            queue.waiting.append(item)
            self._wake.notify()
        for old in (*needless, *dropped):
            self._tell(queue, old, Outcome.REFUSED, "superseded by a newer one" if old in needless else "too many wait")

    def waiting(self) -> int:
        """How many are on their way. Any thread."""
        with self._wake:
            return sum(len(queue.waiting) for queue in self._queues.values())

    def _run(self) -> None:
        """Start what is due, then sleep until something else may be."""
        while True:
            with self._wake:
                if self._is_closing:
                    return
                given_up = self._begin_due()
            for queue, item in given_up:
                self._tell(queue, item, Outcome.REFUSED, f"too late; last: {queue.last}")
            with self._wake:
                if not given_up:
                    self._wake.wait(self._pause_s())

    def _begin_due(self) -> list[tuple[_Queue, Outgoing]]:
        """Begin an attempt for each head that is due; those whose time is over are taken out and returned."""
        given_up: list[tuple[_Queue, Outgoing]] = []
        for queue in self._queues.values():
            if queue.under_way is not None:
                continue
            while queue.waiting and queue.waiting[0].expires_wall_ns <= self._clock.wall_ns():
                given_up.append((queue, queue.waiting.popleft()))
                queue.attempts, queue.not_before_ns = 0, 0
        self._queues = {name: queue for name, queue in self._queues.items() if queue.waiting or queue.under_way is not None}
        now_ns = self._clock.monotonic_ns()
        due = [queue for queue in self._queues.values() if self._may_begin(queue) and queue.not_before_ns <= now_ns]
        for queue in sorted(due, key=lambda each: each.begun_ns):
            if self._may_begin(queue):
                queue.begun_ns = now_ns
                self._under_way[queue.target.name] += 1
                queue.under_way = self._pool.submit(self._attempt, queue, queue.waiting[0])
        return given_up

    def _may_begin(self, queue: _Queue) -> bool:
        """Whether a queue has something to send, and its target a place for one more attempt."""
        has_place = self._under_way[queue.target.name] < _AT_ONCE_A_TARGET
        return bool(queue.waiting) and queue.under_way is None and has_place

    def _attempt(self, queue: _Queue, item: Outgoing) -> None:
        """One attempt, on a thread of the pool; signed with the time of the attempt."""
        try:
            attempt = self._post(queue.target, Envelope(item.id, self._clock.wall_ns() // _NS_S), item.body)
        except Exception as error:  # noqa: BLE001 - whatever it is, the queue must go on
            _LOG.exception("target %s", queue.target.name)
            attempt = Attempt(Outcome.AGAIN, repr(error))
        with self._wake:
            queue.under_way, queue.last = None, attempt.detail
            self._under_way[queue.target.name] -= 1
            queue.attempts += 1
            attempts = queue.attempts
            if attempt.outcome is Outcome.AGAIN:
                queue.not_before_ns = self._clock.monotonic_ns() + int(self._jitter_s(attempts) * _NS_S)
            else:
                queue.waiting.remove(item)
                queue.attempts, queue.not_before_ns = 0, 0
            self._wake.notify()
        if attempt.outcome is not Outcome.AGAIN:
            self._ended(Ended(queue.target, item, attempt.outcome, attempts, attempt.detail))

    def _jitter_s(self, attempts: int) -> float:
        """A pause that grows, of which a half is drawn, so that many senders do not come back together."""
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempts - 1, 16))
        return float(longest * (0.5 + 0.5 * self._random.random()))

    def _pause_s(self) -> float:
        """How long nothing is due."""
        now_ns = self._clock.monotonic_ns()
        due = [queue.not_before_ns - now_ns for queue in self._queues.values() if self._may_begin(queue)]
        return min(_IDLE_S, max(min(due), 1_000_000) / _NS_S) if due else _IDLE_S

    def _tell(self, queue: _Queue, item: Outgoing, outcome: Outcome, detail: str) -> None:
        """Say what became of one that was not delivered."""
        self._ended(Ended(queue.target, item, outcome, queue.attempts, detail))
