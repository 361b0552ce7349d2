"""Where a record lies: which file, which offset, and how large its three areas are."""

from dataclasses import dataclass

from kvtrail_schema.identity import Slot

FILE_HEADER_BYTES = 4096
"""The first bytes of a segment say what it is; records begin behind them."""


def round_up(size: int, step: int) -> int:
    """The least multiple of `step` that is not below `size`."""
    return -(-size // step) * step


@dataclass(frozen=True, slots=True)
class Geometry:
    """A record is header, payload, trailer; each begins at a multiple of `align_bytes`, as direct I/O wants it."""

    payload_bytes: int
    align_bytes: int
    segment_slots: int

    @staticmethod
    def of(payload_bytes: int, align_bytes: int, segment_bytes: int) -> "Geometry":
        """The geometry whose files are about `segment_bytes` large."""
        record_bytes = round_up(payload_bytes, align_bytes) + 2 * align_bytes
        return Geometry(payload_bytes, align_bytes, max(segment_bytes // record_bytes, 1))

    @property
    def stored_bytes(self) -> int:
        """The payload's area: the payload, and zeros up to the alignment."""
        return round_up(self.payload_bytes, self.align_bytes)

    @property
    def record_bytes(self) -> int:
        """From one record to the next."""
        return self.stored_bytes + 2 * self.align_bytes

    def segments(self, slots: int) -> int:
        """How many files so many slots need."""
        return -(-slots // self.segment_slots)

    def segment_of(self, slot: Slot) -> int:
        """The number of a slot's file."""
        return slot // self.segment_slots

    def offset_of(self, slot: Slot) -> int:
        """The offset of a slot's record in its file."""
        return FILE_HEADER_BYTES + slot % self.segment_slots * self.record_bytes

    def runs(self, slots: list[Slot], longest: int) -> list[list[int]]:
        """Indexes into `slots`, which ascend, cut where the next slot is not the next record of the same file."""
        runs: list[list[int]] = []
        for index, slot in enumerate(slots):
            follows = bool(runs) and slots[runs[-1][-1]] + 1 == slot and slot % self.segment_slots != 0
            if follows and len(runs[-1]) < longest:
                runs[-1].append(index)
            else:
                runs.append([index])
        return runs
