"""Many senders at once, each with one batch on its way, as shippers do; and readers that ask without a pause."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

import httpx
from kvtrail_schema.batch import CONTENT_TYPE

from kvtrail_cli.errors import CollectorRefused
from kvtrail_cli.output import Advance

_TIMEOUT_S: Final = 60.0
_BUSY_S: Final = 0.005
_SECOND_NS: Final = 1_000_000_000
_QUESTIONS: Final = ("/v1/requests?limit=50", "/v1/loss", "/metrics")


class Parcel(NamedTuple):
    """A frame, how many rows are in it, and when it is due after the first one; late ones are sent at once."""

    frame: bytes
    rows: int
    due_ns: int = 0


class Arrival(NamedTuple):
    """When a batch was due, or first sent where it was not due at any time; when it was acknowledged; its rows."""

    sent_ns: int
    done_ns: int
    rows: int


def send_all(url: str, parcels: list[Parcel], senders: int, advance: Advance) -> list[Arrival]:
    """Send every parcel once, and again where the collector says that it is busy. Blocks until all are acknowledged.

    Raises:
        CollectorRefused: a batch was refused for good.
    """
    waiting: queue.SimpleQueue[Parcel] = queue.SimpleQueue()
    for parcel in parcels:
        waiting.put(parcel)
    arrivals: list[Arrival] = []  # appended by all senders: atomic in CPython, and guarded by nothing else
    refusals: list[str] = []  # as above
    total = sum(parcel.rows for parcel in parcels)
    begin_ns = time.perf_counter_ns()

    def send() -> None:
        with httpx.Client(base_url=url, headers={"content-type": CONTENT_TYPE}, timeout=_TIMEOUT_S) as client:
            while not refusals:
                try:
                    parcel = waiting.get_nowait()
                except queue.Empty:
                    return
                arrival = _send(client, parcel, begin_ns)
                if isinstance(arrival, str):
                    refusals.append(arrival)
                    return
                arrivals.append(arrival)
                advance(sum(done.rows for done in arrivals), total)

    threads = [threading.Thread(target=send, name=f"kvtrail-bench-sender-{number}") for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refusals:
        raise CollectorRefused(refusals[0])
    return sorted(arrivals, key=lambda arrival: arrival.done_ns)


def _send(client: httpx.Client, parcel: Parcel, begin_ns: int) -> Arrival | str:
    """Send one parcel when it is due, until it is acknowledged; a text where it is refused for good."""
    sent_ns = begin_ns + parcel.due_ns if parcel.due_ns else time.perf_counter_ns()
    time.sleep(max(sent_ns - time.perf_counter_ns(), 0) / _SECOND_NS)
    while True:
        try:
            answer = client.post("/v1/events", content=parcel.frame)
        except httpx.HTTPError as error:
            return f"the collector of the benchmark is gone: {error!r}"
        if answer.status_code == HTTPStatus.OK:
            return Arrival(sent_ns, time.perf_counter_ns(), parcel.rows)
        if answer.status_code not in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
            return f"the collector of the benchmark answers {answer.status_code}: {answer.text}"
        time.sleep(_BUSY_S)


@contextmanager
def reading(url: str, readers: int) -> Iterator[None]:
    """Clients that ask one question after another until the block ends."""
    done = threading.Event()

    def ask(number: int) -> None:
        with httpx.Client(base_url=url, timeout=_TIMEOUT_S) as client:
            while not done.is_set():
                client.get(_QUESTIONS[number % len(_QUESTIONS)])

    threads = [threading.Thread(target=ask, args=(number,), name=f"kvtrail-bench-reader-{number}") for number in range(readers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
