"""Many rows of one kind told by one call: what holds for all of them, for the first alone, and what follows from row to row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kvtrail_schema.absent import NO_U32, NO_U64

PARTS: Final = ("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns")
ESTIMATES: Final = ("restore_estimate_ns", "recompute_estimate_ns", "keep_estimate_ns")
FIRST_ROW_ONLY: Final = frozenset({*PARTS, *ESTIMATES})
"""What holds for a whole op and so stands once (EVENTS §3)."""


def each_row(blocks: Sequence[int], slots: Sequence[int] | None, fields: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The fields of each row of an `emit_blocks`, for emitters that take one event a call.

    `id` counts up, `parent` is the block before, `token_start` goes on by `tokens`; parts and estimates stand on the first.
    """
    for row, block in enumerate(blocks):
        told = {name: value for name, value in fields.items() if not row or name not in FIRST_ROW_ONLY}
        if row and told.get("id", NO_U64) != NO_U64:
            told["id"] += row
        if row and told.get("parent", NO_U64) != NO_U64:
            told["parent"] = blocks[row - 1]
        if row and NO_U32 not in {told.get("token_start", NO_U32), told.get("tokens", NO_U32)}:
            told["token_start"] += row * told["tokens"]
        yield told | {"block": block} | ({} if slots is None else {"slot": slots[row]})
