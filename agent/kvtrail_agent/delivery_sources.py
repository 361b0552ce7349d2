"""Where the frames of a job come from: the ring, by way of the shipper's hand, or a spool. Each knows what an outcome means.

A frame that the other side will never take is told as a drop in its place, by the source that holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kvtrail_schema.batch import StreamState
from kvtrail_schema.errors import CodecError

from kvtrail_agent.courier import Outcome, Verdict
from kvtrail_agent.parcel import Parcel, ending, parcel_of, rejected
from kvtrail_agent.spool import Position, Spool


class Source(Protocol):
    """**Protocol:** holds frames until they are acknowledged. Used by the shipper's main thread alone."""

    def parcels(self, most: int) -> Sequence[Parcel]:
        """The frames to send next, at most so many."""
        ...

    def settle(self, outcome: Outcome) -> None:
        """Let go of what is acknowledged; put a drop in the place of what was rejected."""
        ...


@dataclass(slots=True, eq=False)
class HeldParcel:
    """One frame whose events are still in the ring."""

    parcel: Parcel
    is_settled: bool = False

    def parcels(self, most: int) -> Sequence[Parcel]:
        """The one frame."""
        return (self.parcel,)

    def settle(self, outcome: Outcome) -> None:
        """Acknowledged, or to be told as a drop; a frame without rows that nobody takes carries nothing that could be lost."""
        if outcome.verdict is Verdict.REJECTED and self.parcel.header.count:
            self.parcel = rejected(self.parcel)
        elif outcome.verdict is not Verdict.UNAVAILABLE:
            self.is_settled = True


@dataclass(slots=True, eq=False)
class SpooledFrames:
    """The frames of one spool. `orphaned`: its ring is lost, so after its last frame the stream is told to have been killed."""

    spool: Spool
    orphaned: bool = False
    _under_way: list[tuple[Parcel, Position]] = field(default_factory=list)
    _in_place: Parcel | None = None  # of the frame at the front

    @property
    def is_empty(self) -> bool:
        """Whether nothing is waiting here."""
        return self.spool.is_empty

    def parcels(self, most: int) -> Sequence[Parcel]:
        """The frames at the front; none where the spool turns out to hold nothing whole."""
        glimpse = self.spool.peek(1 if self._in_place else most)
        if not glimpse.frames:
            self.spool.advance(glimpse.end)
            return ()
        self._under_way = [
            (parcel, end)
            for frame, end in zip(glimpse.frames, glimpse.ends, strict=True)
            if (parcel := _read(frame)) is not None
        ]
        if not self._under_way:
            self.spool.advance(glimpse.end)
            return ()
        if self._in_place is not None:
            self._under_way = [(self._in_place, self._under_way[0][1])]
        self._end_if_orphaned(glimpse.end)
        return [parcel for parcel, _ in self._under_way]

    def take_over(self, parcel: Parcel, end: Position) -> None:
        """A frame that is under way already lies in the spool now, as its first."""
        self._under_way = [(parcel, end)]

    def settle(self, outcome: Outcome) -> None:
        """Delete what is acknowledged."""
        if outcome.acknowledged:
            self._pass(outcome.acknowledged)
        if outcome.verdict is Verdict.REJECTED and self._under_way:
            refused, _ = self._under_way[0]
            if refused.header.count:
                self._in_place = rejected(refused)
            else:
                self._pass(1)

    def _pass(self, count: int) -> None:
        """Go past the first frames under way."""
        _, end = self._under_way[count - 1]
        self._under_way = self._under_way[count:]
        self._in_place = None
        self.spool.advance(end)

    def _end_if_orphaned(self, end: Position) -> None:
        """Behind the last frame of a spool without a ring, say how its stream ended."""
        if not self.orphaned or self.spool.peek(1, end).frames:
            return
        last, _ = self._under_way[-1]
        if last.header.state == StreamState.RUNNING:
            self._under_way.append((ending(last.header), end))


def _read(frame: bytes) -> Parcel | None:
    """A frame with its header; one whose checksum holds and which is none all the same is skipped: it was never one of ours."""
    try:
        return parcel_of(frame)
    except CodecError:
        return None
