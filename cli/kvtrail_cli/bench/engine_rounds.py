"""Ours and a peer in turns, so that noise of the machine falls on both."""

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from kvtrail_cli.bench.engine_shapes import Beside

Work = Callable[[], None]
Best = Callable[[list[float]], float]
_GB: Final = 1e9


def in_turns(
    ours: Callable[[], float], peer: Callable[[], float], rounds: int, advance: Callable[[], None], *, best: Best = max
) -> Beside:
    """Both, so many times; a round's order is the reverse of the one before. `best` says which figure of several is best."""
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            of_peer = peer()
            found.append((ours(), of_peer))
        else:
            of_ours = ours()
            found.append((of_ours, peer()))
        advance()
    return Beside(
        statistics.median(mine for mine, _ in found),
        statistics.median(theirs for _, theirs in found),
        statistics.median(mine / theirs for mine, theirs in found),
        best([mine for mine, _ in found]) / best([theirs for _, theirs in found]),
    )


def gb_per_s(size_bytes: int, seconds: float) -> float:
    """A bandwidth."""
    return size_bytes / _GB / seconds


def seconds_of(works: Sequence[Work]) -> float:
    """The time until all are done, each on a thread of its own; threads are there before the clock runs.

    Raises:
        Exception: what the first of them raised that failed.
    """
    gate = threading.Barrier(len(works) + 1)
    errors: list[Exception] = []

    def run(work: Work) -> None:
        gate.wait()
        try:
            work()
        except Exception as exc:  # noqa: BLE001 - it is raised below, where somebody waits for the figure
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(work,), name=f"bench-{at}") for at, work in enumerate(works)]
    for thread in threads:
        thread.start()
    gate.wait()
    began_s = time.perf_counter()
    for thread in threads:
        thread.join()
    ended_s = time.perf_counter()
    for error in errors:
        raise error
    return ended_s - began_s
