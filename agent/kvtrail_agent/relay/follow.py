"""Follows the numbers of one publisher: fills gaps by replay, tells what stays lost, and when the engine began anew.

A number says nothing of the life that it belongs to. So a gap is filled from the last batch that we have, that one included: if
the publisher has another one under this number, it is another life. Pure but for the replay that is passed in; one thread.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvtrail_agent.relay.frames import Published


class Restarted(NamedTuple):
    """The engine began anew: nothing that it told before holds."""


class Missing(NamedTuple):
    """Batches [first, last] never came, and no replay has them."""

    first: int
    last: int


Step = Published | Restarted | Missing
Replay = Callable[[int], Sequence[Published] | None]
"""What the publisher still has from a number on; None where it was not asked or did not answer."""


def no_replay(first: int) -> None:
    """The replay of a publisher that has none."""


@dataclass(slots=True)
class _Mark:
    """The last batch that was passed on."""

    seq: int
    ts_ns: int
    digest: bytes


class Follower:
    """The batches of one publisher in their order, each once."""

    def __init__(self, replay: Replay = no_replay) -> None:
        self._replay = replay
        self._last: _Mark | None = None

    def take(self, message: Published) -> Iterator[Step]:
        """One live message: what it makes known, in order. May wait for a replay."""
        last = self._last
        if last is None:
            yield from self._filled(0, message, self._replay(0) if message.seq else (), is_beginning=True)
        elif message.seq == last.seq + 1:
            yield self._passed(message)
        elif message.seq > last.seq:
            yield from self._after_gap(last, message)
        elif message.ts_ns > last.ts_ns:
            yield from self._anew(message)

    def _after_gap(self, last: _Mark, message: Published) -> Iterator[Step]:
        """Batches are missing before this one, or it is the first that is seen of another life."""
        replayed = self._replay(last.seq)
        same = next((one for one in replayed or () if one.seq == last.seq), None)
        if same is not None and _digest(same) != last.digest:
            yield from self._anew(message)
            return
        yield from self._filled(last.seq + 1, message, replayed, is_beginning=False)

    def _anew(self, message: Published) -> Iterator[Step]:
        """The first that is seen of another life."""
        self._last = None
        yield Restarted()
        yield from self._filled(0, message, self._replay(0) if message.seq else (), is_beginning=False)

    def _filled(
        self, first: int, message: Published, replayed: Sequence[Published] | None, *, is_beginning: bool
    ) -> Iterator[Step]:
        """What lies before a message, as far as it was replayed, and the message.

        What a publisher told before we came, and has no more, is no loss of ours.
        """
        due = first
        for one in sorted(replayed or (), key=lambda one: one.seq):
            if not due <= one.seq < message.seq:
                continue
            if one.seq > due and not is_beginning:
                yield Missing(due, one.seq - 1)
            is_beginning = False
            due = one.seq + 1
            yield self._passed(one)
        if due < message.seq and not is_beginning:
            yield Missing(due, message.seq - 1)
        yield self._passed(message)

    def _passed(self, message: Published) -> Published:
        """Remember a batch that goes on."""
        self._last = _Mark(message.seq, max(message.ts_ns, self._last.ts_ns if self._last else 0), _digest(message))
        return message


def _digest(message: Published) -> bytes:
    """What tells two batches under one number apart."""
    return hashlib.blake2b(message.payload, digest_size=16).digest()
