"""Figures that are asked for when rules are looked at: loss, lag and stalled actions, all of them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kvtrail_schema.batch import StreamState

from kvtrail_collector.alerts.evaluate import Asked
from kvtrail_collector.loss import loss_of
from kvtrail_collector.store.account import Account

NS_S: Final = 1_000_000_000
_RECENT_NS: Final = 300 * NS_S
"""A stream that was not heard of for so long is over: it alarms nobody any more."""


def asked_figures(accounts: Iterable[Account], stalled: Mapping[str, int], now_wall_ns: int) -> Asked:
    """The figures of now.

    Args:
        accounts: the books.
        stalled: how many actions of each engine are stalled.
        now_wall_ns: now, by this collector's wall clock.
    """
    recent = [account for account in accounts if now_wall_ns - account.marks.heard_wall_ns < _RECENT_NS]
    figures: dict[tuple[str, str], float] = {}
    for stream in loss_of(recent, now_wall_ns).streams:
        _add(figures, ("unaccounted_events", stream.engine), stream.unaccounted)
        _add(figures, ("dropped_events", stream.engine), stream.lost - stream.unaccounted)
    for account in recent:
        if account.marks.state == StreamState.RUNNING:
            key = ("lag_s", account.stream.engine)
            figures[key] = max(figures.get(key, 0.0), (now_wall_ns - account.marks.clocks.wall_ns) / NS_S)
    figures.update({("stalled_actions", engine): float(count) for engine, count in stalled.items()})
    return Asked(figures)


def _add(figures: dict[tuple[str, str], float], key: tuple[str, str], count: float) -> None:
    """Add up over the streams of an engine."""
    figures[key] = figures.get(key, 0.0) + count
