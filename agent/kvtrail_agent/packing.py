"""Chunks of a ring as frames: of a size that every reader takes, with the drops that are to be told."""

from dataclasses import dataclass, replace

import numpy as np
from kvtrail_schema import batch
from kvtrail_schema.batch import BatchHeader, DropRange, StreamState
from kvtrail_schema.clock import Clock, read_clocks
from kvtrail_schema.enums import Stage
from kvtrail_schema.errors import FrameTooLarge
from kvtrail_schema.reasons import DropReason

from kvtrail_agent.parcel import Parcel
from kvtrail_agent.ring_file import RingFile
from kvtrail_agent.ring_reader import Chunk, RingReader
from kvtrail_agent.ring_refusals import Refusals


@dataclass(frozen=True, slots=True)
class Packed:
    """A chunk and its frame. The first `refusals` of its drops are from the table of refusals, which it clears."""

    parcel: Parcel
    chunk: Chunk
    refusals: int

    def as_refused(self) -> list[DropRange]:
        """The chunk as ranges that nobody kept: its rows as (spool, spool_full), its own drops as what they are."""
        seqs = self.chunk.table["seq"].to_numpy()
        runs = np.split(seqs, np.flatnonzero(np.diff(seqs) != 1) + 1) if len(seqs) else []
        rows = [DropRange(Stage.SPOOL, DropReason.SPOOL_FULL, int(run[0]), int(run[-1]), len(run)) for run in runs]
        return sorted([*rows, *self.chunk.drops[self.refusals :]], key=lambda drop: drop.first_seq)


class Packer:
    """Encodes what its reader found. Runs in the shipper's main thread; about 0.2 µs an event in full batches."""

    def __init__(self, ring: RingFile, reader: RingReader, refusals: Refusals, clock: Clock, most_rows: int) -> None:
        self._ring = ring
        self._reader = reader
        self._refusals = refusals
        self._clock = clock
        self._most_rows = most_rows

    def pack(self, chunk: Chunk, state: StreamState) -> list[Packed]:
        """A chunk as one frame or several, the refusals that are to be told in the first."""
        refusals = self._refusals.ranges()
        first, *others = self._pack(replace(chunk, drops=(*refusals, *chunk.drops)), state)
        return [replace(first, refusals=len(refusals)), *others]

    def _pack(self, chunk: Chunk, state: StreamState) -> list[Packed]:
        """In halves what is over the size of a batch, or over a bound of its reader; a single event over one is a drop."""
        rows = chunk.table.num_rows
        if rows > self._most_rows:
            return self._in_halves(chunk, state)
        parcel = self._encode(chunk, state)
        if rows and _is_too_large(parcel.frame):
            return self._in_halves(chunk, state) if rows > 1 else self._pack(_too_large(chunk), state)
        return [Packed(parcel, chunk, 0)]

    def _in_halves(self, chunk: Chunk, state: StreamState) -> list[Packed]:
        """Each half by itself."""
        return [packed for half in chunk.halves() for packed in self._pack(half, state)]

    def _encode(self, chunk: Chunk, state: StreamState) -> Parcel:
        """A chunk as a frame."""
        rows = chunk.table.num_rows
        stream = self._ring.stream
        seqs = chunk.table["seq"]
        header = BatchHeader(
            version=batch.VERSION,
            engine=stream.engine,
            epoch=stream.epoch,
            rank=stream.rank,
            first_seq=int(seqs[0].as_py()) if rows else 0,
            last_seq=int(seqs[-1].as_py()) if rows else 0,
            count=rows,
            produced=max(self._reader.highest_seq(), chunk.last_seq),
            clocks=read_clocks(self._clock),
            state=state,
            drops=chunk.drops,
        )
        return Parcel(batch.encode_batch(header, chunk.table), header)


def _is_too_large(frame: bytes) -> bool:
    """Whether a reader with the usual bounds would refuse a frame for a size in it."""
    try:
        batch.peek_header(frame)
    except FrameTooLarge:
        return True
    return False


def _too_large(chunk: Chunk) -> Chunk:
    """A chunk of one row without it: told as a drop."""
    seq = int(chunk.table["seq"][0].as_py())
    drop = DropRange(Stage.ENCODE, DropReason.TOO_LARGE, seq, seq, 1)
    return replace(chunk, table=chunk.table.slice(0, 0), drops=(*chunk.drops, drop))
