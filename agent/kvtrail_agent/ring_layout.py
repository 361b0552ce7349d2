"""The layout of a ring file: a header, a table of drops, fixed record slots, and an area for texts.

```
0        header      who writes, and how far the reader is
4096     drops       1,024 entries of 32 bytes, a ring of its own
36864    slots       power-of-two many records of 128 bytes; the record of seq s lies in slot s mod count
…        texts       bytes of the few long fields, a ring of its own
```

A record is little-endian: t_ns i64 | the fields of its kind, widest first | padding | kind u8 | commit u32. Widest first
leaves every field aligned, so that `struct` packs in its native mode, which takes a third of the time for large numbers.
The commit word is made of the low 30 bits of seq, is never 0, and is written last: a reader that finds it finds the whole
record, and `pack_into`, which zeroes the slot before it packs field by field, never shows an old one. (x86-64 keeps the
order of stores; the C writer asks for it everywhere.) Absent fields hold the value that their width sets aside. Every kind
fits, checked at import. One writing process, one reading process.

A **run** is many rows of one kind that differ in block and slot: one record, the head, in the slot of the first seq, and in
the slot of each further seq a row of 64 bytes in its second half: block u64 | slot u32 | distance to the head u32 | padding |
255 | commit u32. The rows are written first and the head last, so a run is there whole or not at all; a row whose head is
not there is none. A run has at most `run_rows(slot_count)` rows; longer lists are several runs under seqs without a hole.
In the rows behind the head the fields in `FIRST_ROW_ONLY` are absent, `id` counts up, and the blocks of a `block_created`
are a chain: `parent` and `token_start` follow from the row before.
"""

import struct
import sys
from functools import cache
from typing import Final

from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.kinds import FIELDS_OF, Kind

MAGIC: Final = b"KVTRRING"
LAYOUT_VERSION: Final = 2
READABLE_VERSIONS: Final = frozenset({1, 2})
"""Version 2 added runs; what an older agent left behind is read all the same."""
RECORD_BYTES: Final = 128
PAYLOAD_OFFSET: Final = 8
KIND_OFFSET: Final = 123
COMMIT_OFFSET: Final = 124
COMMIT_MASK: Final = 0x3FFFFFFF  # what fits into one digit of a Python integer, so that masking does not allocate
COMMIT_OF_ZERO: Final = 0x40000000
NO_TRACE_BYTES: Final = bytes(16)
ROW_OFFSET: Final = 64  # one cache line a row
ROW_KIND: Final = 255
LARGEST_RUN: Final = 1024

HEADER_BYTES: Final = 4096
DROP_ENTRIES: Final = 1024
DROP_BYTES: Final = 32
SLOTS_OFFSET: Final = HEADER_BYTES + DROP_ENTRIES * DROP_BYTES

# magic, layout version, slot count, size of the text area, epoch, rank, writer's process id, engine's name
IDENTITY: Final = struct.Struct("<8sIIQQII256s")
# Each word below is written by one side only, in one store, and lies on a cache line of its own.
READ_SEQ: Final = 512  # reader: every seq up to this one may be overwritten
READ_TEXT: Final = 576  # reader: every text before this position may be overwritten
READ_DROPS: Final = 640  # reader: this many drop entries may be overwritten
WRITTEN_DROPS: Final = 704  # writer: this many drop entries were begun
STOPPED_SEQ: Final = 768  # writer: 0 while it runs, then its last seq plus 1
READER_PID: Final = 832  # reader: its process id
REFUSED: Final = 2048  # reader: this many ranges it gave up and has not told; they stand in `DROP`'s form from here on
REFUSED_RANGES: Final = REFUSED + 64
REFUSED_ENTRIES: Final = (HEADER_BYTES - REFUSED_RANGES) // DROP_BYTES
WORD_BYTES: Final = 8
# stage, reason, first seq, last seq. Only the newest entry ever grows; a seq in it that was written all the same is no drop.
DROP: Final = struct.Struct("<BB6xQQ8x")
DROP_FIRST: Final = 8
DROP_LAST: Final = 16

_NATIVE: Final = sys.byteorder == "little" and struct.calcsize("@L") == WORD_BYTES
_NATIVE_CODES: Final = str.maketrans("Qq", "Ll")
# block, slot, distance to the head, kind, commit word
ROW: Final = struct.Struct("@LII43xBI" if _NATIVE else "<QII43xBI")
_ALIGNED: Final = {Width.TRACE: 2 * WORD_BYTES, Width.TEXT: WORD_BYTES - 1}


def _place(width: Width) -> int:
    """How far to the front a field goes; texts (8 + 4 bytes) stand between the wide and the narrow ones."""
    return _ALIGNED.get(width) or struct.calcsize(f"<{width.code}")


def run_rows(slot_count: int) -> int:
    """The most rows of one run: a run finds room whole or not at all, so it must be small against its ring."""
    return min(LARGEST_RUN, slot_count // 4)


@cache
def record_fields(kind: Kind) -> tuple[str, ...]:
    """The fields of a kind's record in their order: widest first, else as in its class."""
    return tuple(sorted(FIELDS_OF[kind], key=lambda name: -_place(COLUMNS[name].width)))


@cache
def field_offsets(kind: Kind) -> dict[str, int]:
    """Where each field of a kind's record begins."""
    offsets, offset = {"t_ns": 0}, PAYLOAD_OFFSET
    for name in record_fields(kind):
        offsets[name] = offset
        offset += struct.calcsize(f"<{COLUMNS[name].width.code}")
    return offsets


@cache
def record_struct(kind: Kind) -> struct.Struct:
    """The packed form of a kind's record, from `t_ns` to the commit word."""
    fields = "".join(COLUMNS[name].width.code for name in record_fields(kind))
    used = struct.calcsize(f"<q{fields}")
    if used > KIND_OFFSET:
        message = f"{kind.name.lower()} takes {used} bytes of {KIND_OFFSET}: give it a text, or narrow a field"
        raise ValueError(message)
    codes = f"q{fields}{KIND_OFFSET - used}xBI"
    return struct.Struct(f"@{codes.translate(_NATIVE_CODES)}" if _NATIVE else f"<{codes}")


def trace_bytes(trace_id: str) -> bytes:
    """A W3C trace id as its 16 bytes; all zero (which W3C forbids) where there is none.

    Raises:
        ValueError: it is not 32 hexadecimal digits.
    """
    if not trace_id:
        return NO_TRACE_BYTES
    raw = bytes.fromhex(trace_id)
    if len(raw) != len(NO_TRACE_BYTES):
        message = f"trace_id of {len(raw)} bytes: W3C says {len(NO_TRACE_BYTES)}"
        raise ValueError(message)
    return raw
