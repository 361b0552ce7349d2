"""Computes everything again that follows from events, as one answer."""

from collections.abc import Callable
from typing import Final

from kvtrail_schema.clock import Clock

from kvtrail_collector.rebuild_shapes import Rebuilt
from kvtrail_collector.store import Store

_COUNTS: Final = """
SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM requests), (SELECT count(*) FROM ops)
"""
_SECOND_NS: Final = 1e9


def rebuild(store: Store, clock: Clock, device: Callable[[], str | None]) -> Rebuilt:
    """Rebuild a store's projections. Blocks for seconds a million events; nothing is stored meanwhile, and all of it after.

    Raises:
        StoreError: it could not be done; the projections are as they were.
    """
    began_ns = clock.monotonic_ns()
    store.rebuild().result()
    seconds = (clock.monotonic_ns() - began_ns) / _SECOND_NS
    with store.read() as cursor:
        events, requests, ops = cursor.execute(_COUNTS).fetchall()[0]
    return Rebuilt(events=events, requests=requests, ops=ops, seconds=seconds, device=device())
