"""A frame on its way, with its header, and the frames that stand in for others."""

from dataclasses import dataclass

import msgspec
from kvtrail_schema.batch import BatchHeader, DropRange, StreamState, peek_header
from kvtrail_schema.enums import Stage
from kvtrail_schema.header import encode_head, join_frame
from kvtrail_schema.reasons import DropReason


@dataclass(frozen=True, slots=True)
class Parcel:
    """One frame and what it says of itself."""

    frame: bytes
    header: BatchHeader

    @property
    def is_heartbeat(self) -> bool:
        """Whether it says only that its sender lives: worth nothing later."""
        header = self.header
        return not header.count and not header.drops and header.state == StreamState.RUNNING


def parcel_of(frame: bytes) -> Parcel:
    """A frame that was kept, with its header.

    Raises:
        CodecError: it is none.
    """
    return Parcel(frame, peek_header(frame))


def notice(header: BatchHeader) -> Parcel:
    """A frame without rows: its header alone."""
    bare = msgspec.structs.replace(header, first_seq=0, last_seq=0, count=0, body_bytes=0)
    return Parcel(join_frame(encode_head(bare), b""), bare)


def rejected(parcel: Parcel) -> Parcel:
    """What is told in place of a frame that the other side will never take: its rows as a drop, and its own drops."""
    header = parcel.header
    rows = DropRange(Stage.TRANSPORT, DropReason.REJECTED, header.first_seq, header.last_seq, header.count)
    return notice(msgspec.structs.replace(header, drops=(*header.drops, rows)))


def ending(last: BatchHeader) -> Parcel:
    """The end of a stream whose ring is lost: killed, and what its last words counted and nobody has is gone with it."""
    settled = max([last.last_seq, *(drop.last_seq for drop in last.drops)])
    drops: tuple[DropRange, ...] = ()
    if settled and last.produced > settled:
        lost = last.produced - settled
        drops = (DropRange(Stage.PROCESS, DropReason.KILLED, settled + 1, last.produced, lost),)
    return notice(msgspec.structs.replace(last, state=StreamState.KILLED, drops=drops))
