"""A small language for tests of alerts: a rule in a line, rows of one engine at a second, a store that is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from kvtrail_collector.alerts.batch import NS_S, Origin, Rows, rows_by_stream
from kvtrail_collector.alerts.rules import Rule
from kvtrail_schema.events import Event, PrefetchUsed, PrefetchWasted
from kvtrail_schema.identity import BlockId, PrefetchId, RequestId
from kvtrail_schema.reasons import PrefetchWasteReason

from tests.collector.frames import table

ENGINE = "chat"
NOW_S = 1_000


def rule(**changes: Any) -> Rule:
    """A rule that fires at half wasted and clears at three tenths, at once."""
    given: dict[str, Any] = {
        "name": "waste",
        "measure": "prefetch_waste_share",
        "raise_at": 0.5,
        "clear_at": 0.3,
        "hold_s": 0.0,
    }
    return Rule(**{**given, "window_s": 5, **changes})


def rows_of(events: Iterable[Event], rank: int = 0) -> Rows:
    """Events of one engine as rules see them; wall time is monotonic time."""
    (rows,) = rows_by_stream(stored(events), {1: Origin(ENGINE, rank, 0)})
    return rows


def stored(events: Iterable[Event]) -> pa.Table:
    """Events as a commit has them."""
    rows = table(events)
    return rows.add_column(0, "stream_id", pa.array([1] * rows.num_rows, pa.int32()))


def prefetches(second: int, *, used: int = 0, wasted: int = 0, first_seq: int = 1) -> list[Event]:
    """The ends of prefetches within one second."""
    t_ns = second * NS_S
    told: list[Event] = []
    for number in range(used + wasted):
        own: dict[str, Any] = {"seq": first_seq + number, "t_ns": t_ns, "prefetch": PrefetchId(1), "block": BlockId(number)}
        is_used = number < used
        told.append(
            PrefetchUsed(**own, req=RequestId(1)) if is_used else PrefetchWasted(**own, reason=PrefetchWasteReason.NEVER_NEEDED)
        )
    return told


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
