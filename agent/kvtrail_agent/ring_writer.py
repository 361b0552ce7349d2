"""The writing side of the ring: the few lines that every emit method shares. Runs on the engine's threads.

Seqs come from `itertools.count`, whose `next` is one step under the interpreter's lock, so that several threads draw
different ones without a lock of ours. Only the rare paths, a drop and a text, take a lock.
"""

import itertools
import mmap
import threading
import time
from collections.abc import Callable
from typing import Final

from kvtrail_schema.absent import NO_I64
from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.enums import Stage
from kvtrail_schema.reasons import DropReason

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_file import RingFile

_NOTHING: Final = (0, 0)


class TextAreaFull(Exception):
    """A text found no room: its event is dropped and counted. Never leaves the emit method."""


class TextTooLarge(Exception):
    """A text over half of the area, which may never find room: dropped and counted. Never leaves the emit method."""


class RingWriter:
    """What the generated emit methods stand on. One instance a ring; may be called from several threads."""

    def __init__(self, ring: RingFile, clock: Clock) -> None:
        # The system's clock itself, without a Python frame around it: half the cost of a reading.
        self._now_ns = time.monotonic_ns if type(clock) is SystemClock else clock.monotonic_ns
        self._lock = threading.RLock()
        self._closed = False
        self._attach(ring)

    def _attach(self, ring: RingFile) -> None:
        """Begin to write into a ring, from seq 1. Called at start, and again in a forked child."""
        end = layout.SLOTS_OFFSET + ring.slot_count * layout.RECORD_BYTES
        self._ring = ring
        self._slots = memoryview(ring.memory)[layout.SLOTS_OFFSET : end]
        self._texts = memoryview(ring.memory)[end:]
        self._mask = ring.slot_count - 1
        self._seqs = itertools.count(1)
        # The highest seq that surely has room. Written by any thread; a lost update costs one more look at the header.
        self._limit = ring.slot_count
        self._text_end = 0  # guarded by _lock
        now_ns = None if self._now_ns is time.monotonic_ns else self._now_ns
        self._bind(ring.memory, ring.text_bytes, now_ns, NO_I64, layout.trace_bytes)

    def _bind(
        self,
        memory: mmap.mmap,
        text_bytes: int,
        now_ns: Callable[[], int] | None,
        no_time: int,
        trace_bytes: Callable[[str], bytes],
    ) -> None:
        """Where the writer in C takes over: it overrides this, and the four methods below. Here there is nothing to do."""

    def _draw(self) -> int:
        """Hand out a seq."""
        return next(self._seqs)

    def _last_seq(self) -> int:
        """The highest seq that was handed out."""
        # `count(5)` is the documented form, and the only way to look without drawing.
        return int(repr(self._seqs)[6:-1]) - 1

    def _cost_ns(self) -> int | None:
        """What emitting took so far; None: timing itself would cost this writer more than it could tell."""
        return None

    def _begin_at(self, seq: int) -> None:
        """Hand out this seq next."""
        self._seqs = itertools.count(seq)

    def _is_full(self, seq: int) -> bool:
        """Whether the slot of a seq still holds an unread record; if so, the drop is on the books when this returns."""
        self._limit = self._ring.word(layout.READ_SEQ) + self._mask + 1
        if seq <= self._limit:
            return False
        self._drop(Stage.RING, DropReason.FULL, seq, seq)
        return True

    def _refuse(self, seq: int, error: Exception) -> None:
        """An event could not be written: put it on the books. Its values are at fault, or there was no room for its text."""
        if isinstance(error, TextAreaFull):
            self._drop(Stage.RING, DropReason.FULL, seq, seq)
        elif isinstance(error, TextTooLarge):
            self._drop(Stage.ENCODE, DropReason.TOO_LARGE, seq, seq)
        else:
            self._drop(Stage.ENCODE, DropReason.ENCODE_ERROR, seq, seq)

    def _drop(self, stage: Stage, reason: DropReason, first_seq: int, last_seq: int) -> None:
        """Count a range of dropped seqs, in the newest entry of the table where it continues it."""
        with self._lock:
            written = self._ring.word(layout.WRITTEN_DROPS)
            if written and self._grow(written - 1, stage, reason, first_seq, last_seq):
                return
            layout.DROP.pack_into(self._ring.memory, self._drop_offset(written), stage, reason, first_seq, last_seq)
            self._ring.set_word(layout.WRITTEN_DROPS, written + 1)

    def _drop_offset(self, entry: int) -> int:
        """Where an entry of the table of drops begins."""
        return layout.HEADER_BYTES + (entry % layout.DROP_ENTRIES) * layout.DROP_BYTES

    def _grow(self, entry: int, stage: Stage, reason: DropReason, first_seq: int, last_seq: int) -> bool:
        """Let the newest entry reach over some seqs, if they continue it or no further entry has room. Runs under the lock."""
        offset = self._drop_offset(entry)
        *known, first, last = layout.DROP.unpack_from(self._ring.memory, offset)
        no_room = entry + 1 - self._ring.word(layout.READ_DROPS) >= layout.DROP_ENTRIES
        if no_room or (known == [stage, reason] and first_seq == last + 1):
            # What was written inside a widened range is shipped, and so is no drop.
            self._ring.set_word(offset + layout.DROP_FIRST, min(first, first_seq))
            self._ring.set_word(offset + layout.DROP_LAST, max(last, last_seq))
            return True
        return False

    def _store_text(self, text: str) -> tuple[int, int]:
        """Copy a text into its area; its position and length. Runs under the lock, so that texts lie in seq order."""
        if not text:
            return _NOTHING
        raw = text.encode()
        size = len(self._texts)
        if len(raw) > size // 2:
            raise TextTooLarge
        begin = self._text_end
        if begin % size + len(raw) > size:
            begin += size - begin % size
        if begin + len(raw) - self._ring.word(layout.READ_TEXT) > size:
            raise TextAreaFull
        offset = begin % size
        self._texts[offset : offset + len(raw)] = raw
        self._text_end = begin + len(raw)
        return begin, len(raw)
