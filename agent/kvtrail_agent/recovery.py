"""What dead processes left behind, sent by hand: `kvtrail agent recover DIR`. Blocks until it is sent or nobody takes it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvtrail_schema.clock import Clock, SystemClock

from kvtrail_agent.courier import Courier
from kvtrail_agent.delivery import Delivery
from kvtrail_agent.shipper import LINGER_NS, TICK_S
from kvtrail_agent.spool_leftovers import open_orphan

RECOVER_PATIENCE_NS: Final = 10_000_000_000


def send_orphan(
    directory: Path,
    courier: Courier,
    *,
    clock: Clock | None = None,
    patience_ns: int = LINGER_NS,
    tick: Callable[[], None] | None = None,
) -> bool:
    """Send a spool whose ring is gone to its end; says whether all of it is acknowledged, and the directory gone.

    Gives up when nobody has taken anything for `patience_ns`. `tick` is called between jobs, to show how far it is.
    """
    clock = clock or SystemClock()
    spool = open_orphan(directory)
    if spool is None:
        return not directory.exists()
    delivery = Delivery(courier, spool, clock=clock, orphaned=True, seed=os.getpid())
    while not delivery.is_empty and clock.monotonic_ns() - delivery.progress_ns <= patience_ns:
        delivery.collect()
        delivery.begin_next()
        courier.wait(TICK_S)
        if tick is not None:
            tick()
    spool.close()
    return delivery.is_empty
