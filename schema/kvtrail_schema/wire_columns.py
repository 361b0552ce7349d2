"""What a body of version 3 says of its columns: which they are, how each is written, and on which kinds it stands.

A body is `outside length u32 | inside length u32 | outside | inside, compressed`. Inside begins with `directory length u32 |
directory`, then come streams of numbers (`planes.py`). In the order in which they travel:

1. `kind`, the steps of `seq` less 1, the steps of `t_ns`: in the order of the rows;
2. for each column that has holes a bit a row: whether it has a value there, on the rows of the kinds that have it at all;
3. the values of each column, in the order of `row_order.py`; those of `req`, which stands first, by kind alone.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import msgspec

WIRE_COLUMNS: Final = (
    *("ns", "req", "block", "parent", "tier", "src", "dst", "slot", "op", "prefetch", "step", "id", "cause", "bytes"),
    *("tokens", "token_start", "queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns", "wait_ns", "duration_ns"),
    *("restore_estimate_ns", "recompute_estimate_ns", "keep_estimate_ns", "deadline_ns", "priority", "refs", "depth"),
    *("dtype", "path", "pinned", "numa", "device_numa", "device", "queue", "reason"),
    *("prefill_tokens", "decode_tokens", "device_ns", "tokens_gpu", "tokens_host", "tokens_nvme", "tokens_remote"),
    *("capacity_bytes", "used_bytes", "free_bytes", "pinned_bytes", "evictable_bytes"),
    *("in_flight", "pending_prefetch", "orphans", "largest_hole_bytes", "connections", "utilisation_pct", "idle_pct"),
    *("memory_bytes", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "power_mw", "produced", "drained", "stage"),
    *("previous_epoch", "first_seq", "last_seq", "count", "value", "trace_id", "text"),
)
"""Columns that travel as a number, their place here. For ever: nothing may be moved or taken out. A later version reads
numbers that this one does not have, so a new column travels by its name until there is a new version of the frame."""

IDS: Final = frozenset({"ns", "req", "block", "parent", "op", "prefetch", "step", "id", "cause"})
"""Columns of ids: the same ones stand on many rows."""


class Coding(IntEnum):
    """How the values of a column are written; in a directory, `HOLES` is added where it has any."""

    NUMBERS = 0
    """Numbers less the smallest of them, which stands among the directory's bases."""
    SIGNED = 1
    """Numbers of either sign."""
    FLOATS = 2
    """The bits of each."""
    BOOLS = 3
    """Numbers, 0 and 1."""
    TEXTS = 4
    """How many bytes each has, as numbers, then all bytes of UTF-8."""
    IDS = 5
    """Each different id once, numbered as they first stand: first the steps of the numbers, less 1, then the ids."""
    IDS_STEPS = 6
    """As `IDS`, and the ids themselves are steps from one to the next."""
    MORE_IDS = 7
    """Rows that go on behind those of the column before, in one numbering with them."""
    PLACES = 8
    """Slots. A copy is a block in a tier: the first slot of each, as numbers, then how far each later one is from it."""


HOLES: Final = 16
"""Added to a coding where rows of its kinds lack a value."""


LENGTHS: Final = struct.Struct("<II")
LENGTH: Final = struct.Struct("<I")
_CELL_BYTES: Final = 8
"""What a value takes in memory at most, texts aside."""


class Directory(msgspec.Struct, frozen=True, array_like=True):
    """What stands before the streams. `kinds_of` has a bit for each column and kind, kinds ascending.

    `first_seq` is in the header too: a sender that cut its rows otherwise than it says is found out.
    """

    columns: list[int | str]
    codings: bytes
    kinds_of: bytes
    bases: list[int]
    shapes: list[int]
    first_seq: int
    first_t_ns: int


def number_of(name: str) -> int | str:
    """A column as a directory has it."""
    return WIRE_COLUMNS.index(name) if name in WIRE_COLUMNS else name


def name_of_column(number: int | str) -> str:
    """The inverse of `number_of`.

    Raises:
        ValueError: a number that this version does not know.
    """
    if isinstance(number, str):
        return number
    if not 0 <= number < len(WIRE_COLUMNS):
        raise ValueError(f"column {number}, of which there are {len(WIRE_COLUMNS)}")
    return WIRE_COLUMNS[number]


def needs_bytes(inside_bytes: int, rows: int, columns: int) -> int:
    """What reading a body takes: its inside, and a number for each row and column, the three of every row among them."""
    return inside_bytes + _CELL_BYTES * rows * (columns + 3)
