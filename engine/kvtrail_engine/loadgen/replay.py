"""The open loop: each request comes at its own time, whatever the engine is doing."""

import threading
from collections.abc import Callable, Iterable

from kvtrail_engine.clock import Clock
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.request import RequestHandle, RequestSpec

SLICE_NS = 200_000_000

Submit = Callable[[RequestSpec], RequestHandle]


def replay(
    arrivals: Iterable[Arrival],
    submit: Submit,
    *,
    clock: Clock,
    start_ns: int,
    on_submitted: Callable[[RequestHandle], None],
    stop: threading.Event,
) -> None:
    """Submit each arrival at `start_ns` plus its own time. Blocks until the last one, or until `stop` is set.

    It never waits for a result, so that a slow engine gets its requests no later; one that comes late because this
    thread was late arrives when it is submitted.
    """
    for arrival in arrivals:
        at_ns = start_ns + arrival.at_ns
        while (left_ns := at_ns - clock.now_ns()) > 0:
            if stop.is_set():
                return
            clock.sleep_until_ns(clock.now_ns() + min(left_ns, SLICE_NS))
        on_submitted(submit(arrival.spec))
