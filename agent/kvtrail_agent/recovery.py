"""What dead processes left behind, sent by hand: `kvtrail agent recover DIR`. Blocks until it is sent or nobody takes it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_schema.clock import Clock

from kvtrail_agent.courier import Courier
from kvtrail_agent.delivery import Delivery
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipper import LINGER_NS, TICK_S, Ended, Shipper
from kvtrail_agent.shipper_lock import only_shipper, remove_ring
from kvtrail_agent.shipping import left_behind
from kvtrail_agent.spool_leftovers import open_orphan, orphans

PATIENCE_NS: Final = 10_000_000_000
"""How long an operator waits for a transport that takes nothing."""


class Recovered(NamedTuple):
    """What was found and sent. `left`: rings and spools that are still there, in use by a shipper or not taken by anybody."""

    rings: int
    spools: int
    left: int


def recover(
    directory: Path,
    courier: Courier,
    settings: AgentSettings,
    *,
    clock: Clock,
    patience_ns: int = PATIENCE_NS,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Recovered:
    """Send every ring whose writer is gone and every spool whose ring is gone, of one directory, to their ends.

    `on_progress` is told the bytes that are settled and those there were. A live engine's ring is left alone.
    """
    rings = [(ring.path, ring.path.stat().st_size) for ring in left_behind(directory)]
    spools = [(path, _bytes_in(path)) for path in orphans(directory)]
    total, done, sent_rings, sent_spools = sum(size for _, size in [*rings, *spools]), 0, 0, 0
    for ring, size in rings:
        sent_rings += send_ring(ring, courier, settings, clock=clock, patience_ns=patience_ns)
        on_progress(done := done + size, total)
    for spool, size in spools:
        before = done

        def tick(spool: Path = spool, whole: int = before + size) -> None:
            on_progress(whole - _bytes_in(spool), total)

        sent_spools += send_orphan(spool, courier, clock=clock, patience_ns=patience_ns, tick=tick)
        on_progress(done := done + size, total)
    return Recovered(sent_rings, sent_spools, len(rings) + len(spools) - sent_rings - sent_spools)


def send_ring(ring: Path, courier: Courier, settings: AgentSettings, *, clock: Clock, patience_ns: int) -> bool:
    """Send a ring whose writer is gone to its end; says whether all of it is acknowledged, and the file gone."""
    with only_shipper(ring) as alone:
        if not alone:
            return False
        opened = open_ring(ring)
        ended = Shipper(opened, courier, settings, clock=clock, linger_ns=patience_ns, seed=os.getpid()).run()
        opened.close()
        if ended is not Ended.DELIVERED:
            return False
        remove_ring(ring)
    return True


def send_orphan(
    directory: Path,
    courier: Courier,
    *,
    clock: Clock,
    patience_ns: int = LINGER_NS,
    tick: Callable[[], None] = lambda: None,
) -> bool:
    """Send a spool whose ring is gone to its end; says whether all of it is acknowledged, and the directory gone.

    Gives up when nobody has taken anything for `patience_ns`. `tick` is called while it waits, to show how far it is.
    """
    spool = open_orphan(directory)
    if spool is None:
        return not directory.exists()
    delivery = Delivery(courier, spool, clock=clock, orphaned=True, seed=os.getpid())
    while not delivery.is_empty and clock.monotonic_ns() - delivery.progress_ns <= patience_ns:
        delivery.collect()
        delivery.begin_next()
        courier.wait(TICK_S)
        tick()
    spool.close()
    return delivery.is_empty


def _bytes_in(directory: Path) -> int:
    """What the segments of a spool take."""
    try:
        return sum(path.stat().st_size for path in directory.glob("*.segment"))
    except OSError:
        return 0
