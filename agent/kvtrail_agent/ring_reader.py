"""The reading side of the ring: records as columns, in seq order, without a Python step per event.

Runs in the shipper. Reading takes nothing away: `release` does, once the batch is acknowledged, so that a shipper which
is killed leaves everything for the next one.
"""

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from kvtrail_schema.arrow_schema import EVENT_SCHEMA
from kvtrail_schema.batch import DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_columns import columns_of
from kvtrail_agent.ring_damage import as_drops, readable
from kvtrail_agent.ring_file import RingFile
from kvtrail_agent.ring_runs import unfold


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one read found: rows in seq order, drops between them, and how far to release once both are delivered.

    `last_seq` is the last seq that the chunk settles, by a row or by a drop; equal to `first_seq - 1` when it is empty.
    """

    table: pa.Table
    drops: tuple[DropRange, ...]
    first_seq: int
    last_seq: int
    text_end: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing new was found."""
        return self.last_seq < self.first_seq

    def halves(self) -> "tuple[Chunk, Chunk]":
        """The chunk as two, each with half of its rows (at least two) and with the drops between them."""
        half = self.table.num_rows // 2
        border = int(self.table["seq"][half].as_py())
        before = tuple(drop for drop in self.drops if drop.first_seq < border)
        first = Chunk(self.table.slice(0, half), before, self.first_seq, border - 1, 0)
        second = Chunk(self.table.slice(half), self.drops[len(before) :], border, self.last_seq, self.text_end)
        return first, second


class RingReader:
    """Reads one ring. One thread of one process at a time."""

    def __init__(self, ring: RingFile) -> None:
        self._ring = ring
        end = layout.SLOTS_OFFSET + ring.slot_count * layout.RECORD_BYTES
        memory = np.frombuffer(ring.memory, dtype=np.uint8)
        self._slots = memory[layout.SLOTS_OFFSET : end].reshape(ring.slot_count, layout.RECORD_BYTES)
        self._commits = self._slots[:, layout.COMMIT_OFFSET :].view("<u4").reshape(-1)
        self._kinds = self._slots[:, layout.KIND_OFFSET]
        self._distances = self._slots[:, layout.ROW_OFFSET + 12 : layout.ROW_OFFSET + 16].view("<u4").reshape(-1)
        self._texts = memoryview(ring.memory)[end:]
        ring.set_word(layout.READER_PID, os.getpid())

    @property
    def stopped(self) -> bool:
        """Whether the writer said that nothing more will come."""
        return self._ring.word(layout.STOPPED_SEQ) != 0

    @property
    def next_seq(self) -> int:
        """The first seq that is not released."""
        return self._ring.word(layout.READ_SEQ) + 1

    def is_ready(self, rows: int) -> bool:
        """Whether so many seqs, or half of the ring, lie there to be read; looks at one commit word and the newest drop."""
        last = self.next_seq + min(rows, self._ring.slot_count // 2) - 1
        if self._is_there(np.array([last], dtype=np.uint64))[0]:
            return True
        written = self._ring.word(layout.WRITTEN_DROPS)
        return written > 0 and self._drop(written - 1).last_seq >= last

    def read(self, most_rows: int) -> Chunk:
        """What lies next in the ring, up to `most_rows` rows, up to the first seq that is neither written nor dropped.

        A run is read whole, so there may be as many rows more as a run can have.
        """
        first = self.next_seq
        drops, pieces, seq, rows = self._drop_ranges(), [], first, 0
        taken: list[DropRange] = []
        while rows < most_rows:
            written = self._written_from(seq, most_rows - rows)
            if written:
                pieces.append(np.arange(seq, seq + written, dtype=np.uint64))
                rows, seq = rows + written, seq + written
                continue
            dropped = next((drop for drop in drops if drop.first_seq <= seq <= drop.last_seq), None)
            if dropped is None:
                break
            last = self._hole_end(seq, dropped.last_seq)
            taken.append(DropRange(dropped.stage, dropped.reason, seq, last, last - seq + 1))
            seq = last + 1
        if pieces and (rest := self._run_rest(seq)):
            pieces.append(np.arange(seq, seq + rest, dtype=np.uint64))
            seq += rest
        return self._chunk(first, seq - 1, pieces, taken)

    def read_rest(self) -> Chunk:
        """Everything that a dead writer left. What it had begun and not finished is a drop by (process, killed)."""
        first, highest = self.next_seq, self.highest_seq()
        seqs = np.arange(first, highest + 1, dtype=np.uint64)
        there = self._is_there(seqs)
        known, taken = self._drop_ranges(), []
        for begin, end in _runs(seqs[~there]):
            taken.extend(_explained(begin, end, known))
        return self._chunk(first, highest, [seqs[there]], taken)

    def read_hole(self) -> Chunk:
        """The seqs before the next settled one, given up: their thread was torn out of its emit."""
        first, highest = self.next_seq, self.highest_seq()
        known = min((drop.first_seq for drop in self._drop_ranges() if drop.first_seq > first), default=highest + 1)
        last = self._hole_end(first, min(highest, known - 1))
        drop = DropRange(Stage.ENCODE, DropReason.KILLED, first, last, last - first + 1)
        return self._chunk(first, last, [], [drop])

    def highest_seq(self) -> int:
        """The highest seq that was handed out, as far as the file shows it: written, dropped, or stated at stop."""
        stopped = self._ring.word(layout.STOPPED_SEQ)
        first = self.next_seq
        ahead = (self._commits.astype(np.int64) - (first & layout.COMMIT_MASK)) & layout.COMMIT_MASK
        fresh = ahead[(ahead < self._ring.slot_count) & (self._commits != 0)]
        written = first + int(fresh.max()) if len(fresh) else first - 1
        dropped = max((drop.last_seq for drop in self._drop_ranges()), default=0)
        return max(written, dropped, stopped - 1)

    def release(self, chunk: Chunk) -> None:
        """Give the room of a delivered chunk back to the writer; that of a half run only with its other half."""
        self._ring.set_word(layout.READ_TEXT, max(chunk.text_end, self._ring.word(layout.READ_TEXT)))
        self._ring.set_word(layout.READ_SEQ, self._run_border(chunk.last_seq))
        written, taken = self._ring.word(layout.WRITTEN_DROPS), self._ring.word(layout.READ_DROPS)
        # The newest entry may still grow, so it stays.
        while taken < written - 1 and self._drop(taken).last_seq <= chunk.last_seq:
            taken += 1
        self._ring.set_word(layout.READ_DROPS, taken)

    def _written_from(self, seq: int, most: int) -> int:
        """How many seqs from this one on are written without a hole; looks no further than the end of the slots."""
        room = self._ring.slot_count - seq % self._ring.slot_count
        there = self._is_there(np.arange(seq, seq + min(most, room), dtype=np.uint64))
        return len(there) if there.all() else int(np.argmin(there))

    def _run_rest(self, seq: int) -> int:
        """How many rows of a run lie from this seq on, up to the head of another one."""
        ahead = np.arange(seq, seq + layout.run_rows(self._ring.slot_count), dtype=np.uint64)
        are_rows = self._is_there(ahead) & (self._kinds[self._indexes(ahead)] == layout.ROW_KIND)
        return len(ahead) if are_rows.all() else int(np.argmin(are_rows))

    def _run_border(self, last: int) -> int:
        """The seq itself, or the one before the head of the run that goes on behind it."""
        after = np.array([last + 1], dtype=np.uint64)
        index = self._indexes(after)[0]
        if self._kinds[index] != layout.ROW_KIND or not self._is_there(after)[0]:
            return last
        return last - int(self._distances[index])

    def _indexes(self, seqs: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """In which slots seqs lie."""
        return (seqs & np.uint64(self._ring.slot_count - 1)).astype(np.intp)

    def _is_there(self, seqs: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which seqs are written, whole, in their slots; a row of a run only if its head is."""
        indexes = self._indexes(seqs)
        found: npt.NDArray[np.bool_] = self._commits[indexes] == _commit_words(seqs)
        rows = np.flatnonzero(found & (self._kinds[indexes] == layout.ROW_KIND))
        if len(rows):
            heads = seqs[rows] - self._distances[indexes[rows]]
            found[rows] = self._commits[self._indexes(heads)] == _commit_words(heads)
        return found

    def _hole_end(self, seq: int, last: int) -> int:
        """The end of the run of unwritten seqs that begins at `seq`, at most `last`.

        A round of the ring ahead nothing can be written yet, so looking that far is enough.
        """
        ahead = np.arange(seq, min(last, seq + self._ring.slot_count - 1) + 1, dtype=np.uint64)
        there = self._is_there(ahead)
        return seq + int(np.argmax(there)) - 1 if there.any() else last

    def _drop(self, entry: int) -> DropRange:
        """One entry of the table of drops."""
        offset = layout.HEADER_BYTES + (entry % layout.DROP_ENTRIES) * layout.DROP_BYTES
        stage, reason, first, last = layout.DROP.unpack_from(self._ring.memory, offset)
        return DropRange(Stage(stage), DropReason(reason), first, last, last - first + 1)

    def _drop_ranges(self) -> list[DropRange]:
        """The entries of the drop table that are not yet released."""
        return [self._drop(n) for n in range(self._ring.word(layout.READ_DROPS), self._ring.word(layout.WRITTEN_DROPS))]

    def _chunk(self, first: int, last: int, pieces: list[npt.NDArray[np.uint64]], drops: list[DropRange]) -> Chunk:
        """The records of some seqs as columns, with the drops between them."""
        seqs = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint64)
        sound = readable(self._kinds, self._distances, self._indexes(seqs))
        if not sound.all():
            drops = sorted([*drops, *as_drops(seqs[~sound])], key=lambda drop: drop.first_seq)
            seqs = seqs[sound]
        columns, text_end = columns_of(unfold(self._slots, self._indexes(seqs)), self._texts)
        columns["seq"] = pa.array(seqs)
        arrays = [columns.get(field.name, pa.nulls(len(seqs), field.type)) for field in EVENT_SCHEMA]
        return Chunk(pa.Table.from_arrays(arrays, schema=EVENT_SCHEMA), tuple(drops), first, last, text_end)


def _commit_words(seqs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """What the commit words of written seqs are."""
    words: npt.NDArray[np.uint64] = seqs & np.uint64(layout.COMMIT_MASK)
    words[words == 0] = layout.COMMIT_OF_ZERO
    return words


def _runs(seqs: npt.NDArray[np.uint64]) -> list[tuple[int, int]]:
    """Ascending seqs as closed ranges."""
    if not len(seqs):
        return []
    breaks = np.flatnonzero(np.diff(seqs) != 1)
    begins, ends = [0, *(breaks + 1)], [*breaks, len(seqs) - 1]
    return [(int(seqs[b]), int(seqs[e])) for b, e in zip(begins, ends, strict=True)]


def _explained(begin: int, end: int, known: list[DropRange]) -> list[DropRange]:
    """A hole, cut into the parts that the drop table explains and those that only the writer's death does."""
    found, seq = [], begin
    while seq <= end:
        cover = next((drop for drop in known if drop.first_seq <= seq <= drop.last_seq), None)
        later = min((drop.first_seq for drop in known if drop.first_seq > seq), default=end + 1)
        last = min(end, cover.last_seq if cover else later - 1)
        stage, reason = (cover.stage, cover.reason) if cover else (Stage.PROCESS, DropReason.KILLED)
        found.append(DropRange(stage, reason, seq, last, last - seq + 1))
        seq = last + 1
    return found
