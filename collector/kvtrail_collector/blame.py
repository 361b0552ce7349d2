"""Whose service time a wait in a queue was: every nanosecond waited is charged to what was in service (LEDGER §4)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kvtrail_schema.identity import OpId


class QueueWait(NamedTuple):
    """An op stood in the queue during [start, end)."""

    start_ns: int
    end_ns: int


class Service(NamedTuple):
    """An op was in service during [start, end)."""

    start_ns: int
    end_ns: int
    op: OpId


def charge(waits: Sequence[QueueWait], services: Iterable[Service]) -> dict[OpId | None, int]:
    """Charge the waits in one queue to the ops in service there; None is charged where none was.

    Ops in service at one instant share it; what does not divide goes to the smallest op. The charges add up to the
    waits, exactly. A sweep over the borders of all intervals, O(n log n) for a bounded number in service.
    """
    charges: dict[OpId | None, int] = {}
    in_service: set[OpId] = set()
    waiting, since = 0, 0
    for t_ns, change, op in _borders(waits, services):
        if waiting and t_ns > since:
            _share(charges, in_service, t_ns - since, waiting)
        since = t_ns
        if op is None:
            waiting += change
        elif change > 0:
            in_service.add(op)
        else:
            in_service.discard(op)
    return charges


def _borders(waits: Sequence[QueueWait], services: Iterable[Service]) -> list[tuple[int, int, OpId | None]]:
    """Each begin (+1) and end (-1) of an interval, in order of time."""
    low = min((wait.start_ns for wait in waits), default=0)
    high = max((wait.end_ns for wait in waits), default=0)
    borders: list[tuple[int, int, OpId | None]] = []
    for wait in waits:
        if wait.end_ns > wait.start_ns:
            borders += [(wait.start_ns, 1, None), (wait.end_ns, -1, None)]
    for service in services:
        if service.end_ns > service.start_ns and service.start_ns < high and service.end_ns > low:
            borders += [(service.start_ns, 1, service.op), (service.end_ns, -1, service.op)]
    borders.sort(key=lambda border: border[0])
    return borders


def _share(charges: dict[OpId | None, int], in_service: set[OpId], length_ns: int, waiting: int) -> None:
    """Charge one piece, in which nothing begins or ends, on behalf of all that wait."""
    if not in_service:
        charges[None] = charges.get(None, 0) + length_ns * waiting
        return
    each, rest = divmod(length_ns, len(in_service))
    for op in in_service:
        charges[op] = charges.get(op, 0) + each * waiting
    if rest:
        smallest = min(in_service)
        charges[smallest] += rest * waiting
