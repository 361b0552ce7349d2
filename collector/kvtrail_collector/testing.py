"""Doubles for tests, of this project and of its users: a store in memory, and a real collector on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kvtrail_schema.clock import Clock, SystemClock

from kvtrail_collector.serve import CollectorServer, open_store
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY, Store


@dataclass(frozen=True, slots=True)
class RunningCollector:
    """A collector that answers at `url`, and the store behind it."""

    url: str
    store: Store


def memory_store() -> Store:
    """A store that forgets everything when it is closed; use it as a context manager."""
    return Store.open(MEMORY)


@contextmanager
def running_collector(settings: Settings | None = None, *, clock: Clock | None = None) -> Iterator[RunningCollector]:
    """A collector on a free port of loopback, in threads of this process; stopped and closed at the end.

    Without settings it keeps its events in memory. Settings are taken as they are, but for the port, which is a free one.
    """
    own = settings or Settings(store=MEMORY, port=0)
    with open_store(own, clock) as store:
        server = CollectorServer(own, store, clock=clock or SystemClock())
        thread = threading.Thread(target=server.run, name="kvtrail-test-collector", daemon=True)
        thread.start()
        try:
            yield RunningCollector(server.address.url, store)
        finally:
            server.stop()
            thread.join()
