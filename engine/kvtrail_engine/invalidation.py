"""Taking blocks away for good: told, out of every index at once, and gone from every place soon."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import EventId, NamespaceId, Slot
from kvtrail_schema.reasons import ErrorReason, InvalidateReason

from kvtrail_engine.context import Context
from kvtrail_engine.errors import TransferError
from kvtrail_engine.identity.selector import Members
from kvtrail_engine.namespaces import Namespaces
from kvtrail_engine.residency import Residency
from kvtrail_engine.tiers.pool import Copy, CopyState, Doom

T = TypeVar("T")
Revoke = Callable[[set[NamespaceId]], None]
POLL_S = 0.002


class Ask(Protocol):
    """**Protocol:** runs a question on the engine's thread and waits for its answer."""

    def __call__(self, question: Callable[[], T]) -> T:
        """Ask it."""
        ...


class Eraser(Protocol):
    """**Protocol:** a tier whose data outlives its slots; called on the thread of whoever invalidates."""

    def erase(self, slots: Sequence[Slot]) -> None:
        """Make what lies in these slots unreadable. Blocks.

        Raises:
            TransferError: it could not be done; none of them counts as erased.
        """
        ...


@dataclass(frozen=True, slots=True)
class Invalidation:
    """What came of an invalidation. Whatever it says, no lookup finds any of its blocks any more."""

    event: EventId
    copies: dict[Tier, int]
    """Copies that were taken away, by tier."""
    unfinished: int
    """Of them, those that were still in use or not erased when the time was up; they are let go of as soon as may be."""


class Invalidator:
    """Runs on the engine's thread, but for `erase`, which blocks and therefore runs elsewhere."""

    def __init__(
        self,
        context: Context,
        residency: Residency,
        namespaces: Namespaces,
        revoke: Revoke,
        erasers: Mapping[Tier, Eraser],
    ) -> None:
        self._context = context
        self._residency = residency
        self._namespaces = namespaces
        self._revoke = revoke
        self._erasers = erasers
        self._claimed: set[Copy] = set()
        """What somebody is erasing now: its slot is free afterwards, so that nobody else may erase it as well."""

    def begin(self, selector: Members, text: str, reason: InvalidateReason) -> tuple[EventId, Counter[Tier]]:
        """Tell the invalidation, call off the requests that read such blocks, and take every copy out of its index.

        Costs a look at every copy. The event's id and the copies by tier.
        """
        event = self._context.ids.event()
        self._context.emit.invalidation_requested(event, reason, text)
        meant = self._namespaces.invalidated(selector)
        self._revoke(meant)
        counts: Counter[Tier] = Counter()
        for pool in self._context.pools.values():
            for copy in pool.copies():
                if copy.block.ns in meant:
                    self._residency.invalidate(copy, Doom(event, reason))
                    counts[pool.tier] += 1
        return event, counts

    def left(self, event: EventId) -> int:
        """How many copies fell to an invalidation and are not gone yet."""
        return sum(copy.doom is not None and copy.doom.event == event for copy in self._residency.condemned)

    @property
    def owed(self) -> int:
        """Copies that fell to some invalidation and are not gone yet."""
        return len(self._residency.condemned)

    def claim(self) -> list[Copy]:
        """The copies, of any invalidation, that nobody uses, so that only their data has to go. Whoever asks erases them, and
        says so by `finish`; until then nobody else is told of them.
        """
        unused = [copy for copy in self._residency.condemned if copy.refs == 0 and copy.state is CopyState.READY]
        mine = [copy for copy in unused if copy not in self._claimed]
        self._claimed.update(mine)
        return mine

    def erase(self, copies: Sequence[Copy]) -> dict[Tier, TransferError]:
        """Erase what claimed copies left in their tiers; the tiers that refused, of whose copies none counts as erased.

        Blocks: never on the engine's thread. Nobody else touches the slots meanwhile, because they are not free yet.
        """
        failed: dict[Tier, TransferError] = {}
        for tier in {copy.tier for copy in copies}:
            try:
                self._erasers[tier].erase([copy.slot for copy in copies if copy.tier is tier])
            except TransferError as error:
                failed[tier] = error
        return failed

    def finish(self, copies: Sequence[Copy], failed: Mapping[Tier, TransferError]) -> None:
        """Claimed copies were erased, but for those of the tiers that refused: tell both."""
        self._claimed.difference_update(copies)
        for copy in copies:
            if copy.tier not in failed:
                self._residency.erased(copy)
        for tier, error in failed.items():
            self._context.emit.error(ErrorReason.IO, tier, text=f"invalidated data is not erased yet: {error}")


def erase_owed(invalidator: Invalidator, ask: Ask) -> dict[Tier, TransferError]:
    """Erase all that can be erased now, and tell it; the tiers that refused. Blocks; never on the engine's thread."""
    copies = ask(invalidator.claim)
    failed = invalidator.erase(copies)
    ask(partial(invalidator.finish, copies, failed))
    return failed


def invalidate(
    invalidator: Invalidator, ask: Ask, selector: Members, reason: InvalidateReason, timeout_s: float
) -> Invalidation:
    """Invalidate, and wait until everything is gone or the time is up. Blocks; never on the engine's thread."""
    text = json.dumps(selector, sort_keys=True, separators=(",", ":"))
    event, counts = ask(lambda: invalidator.begin(selector, text, reason))
    deadline_s = time.monotonic() + timeout_s
    while True:
        failed = erase_owed(invalidator, ask)
        left = ask(lambda: invalidator.left(event))
        if not left or failed or time.monotonic() > deadline_s:
            return Invalidation(event, dict(counts), left)
        time.sleep(POLL_S)
