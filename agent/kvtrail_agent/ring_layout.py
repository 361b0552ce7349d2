"""The layout of a ring file: a header, a table of drops, fixed record slots, and an area for texts.

```
0        header      who writes, and how far the reader is
4096     drops       1,024 entries of 32 bytes, a ring of its own
36864    slots       power-of-two many records of 128 bytes; the record of seq s lies in slot s mod count
…        texts       bytes of the few long fields, a ring of its own
```

A record is packed, little-endian: t_ns i64 | kind u8 | the fields of its kind in the order of its class | padding | commit.
The commit word is the low half of seq and is written last: a reader that finds it finds the whole record. (x86-64 keeps
the order of stores; so does CPython's `pack_into`, which packs field by field.) Absent fields hold the value that their
width sets aside. Every kind fits into 124 bytes, checked at import. One writing process, one reading process.
"""

import struct
from functools import cache
from typing import Final

from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.kinds import FIELDS_OF, Kind

MAGIC: Final = b"KVTRRING"
LAYOUT_VERSION: Final = 1
RECORD_BYTES: Final = 128
COMMIT_OFFSET: Final = 124
PAYLOAD_OFFSET: Final = 9
NO_TRACE_BYTES: Final = bytes(16)

HEADER_BYTES: Final = 4096
DROP_ENTRIES: Final = 1024
DROP_BYTES: Final = 32
SLOTS_OFFSET: Final = HEADER_BYTES + DROP_ENTRIES * DROP_BYTES

# magic, layout version, slot count, size of the text area, epoch, rank, writer's process id, engine's name
IDENTITY: Final = struct.Struct("<8sIIQQII256s")
# Each word below is written by one side only and lies on a cache line of its own.
READ_SEQ: Final = 512  # reader: every seq up to this one may be overwritten
READ_TEXT: Final = 576  # reader: every text before this position may be overwritten
READ_DROPS: Final = 640  # reader: this many drop entries may be overwritten
WRITTEN_DROPS: Final = 704  # writer: this many drop entries were begun
STOPPED_SEQ: Final = 768  # writer: 0 while it runs, then its last seq plus 1
READER_PID: Final = 832  # reader: its process id
WORD: Final = struct.Struct("<Q")
# stage, reason, first seq, last seq. Only the newest entry ever grows; a seq in it that was written all the same is no drop.
DROP: Final = struct.Struct("<BB6xQQ8x")


@cache
def record_struct(kind: Kind) -> struct.Struct:
    """The packed form of a kind's record, from `t_ns` to the commit word."""
    fields = "".join(COLUMNS[name].width.code for name in FIELDS_OF[kind])
    used = struct.calcsize(f"<qB{fields}")
    if used > COMMIT_OFFSET:
        message = f"{kind.name.lower()} takes {used} bytes of {COMMIT_OFFSET}: give it a text, or narrow a field"
        raise ValueError(message)
    return struct.Struct(f"<qB{fields}{COMMIT_OFFSET - used}xI")


def trace_bytes(trace_id: str) -> bytes:
    """A W3C trace id as its 16 bytes; all zero (which W3C forbids) where there is none."""
    return bytes.fromhex(trace_id) if trace_id else NO_TRACE_BYTES
