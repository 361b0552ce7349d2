"""Runs, read: each row behind the head of a run becomes a whole record, so that what follows knows nothing of runs."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from kvtrail_schema.absent import NO_U32, NO_U64
from kvtrail_schema.block_rows import FIRST_ROW_ONLY
from kvtrail_schema.kinds import Kind

from kvtrail_agent import ring_layout as layout

Records = npt.NDArray[np.uint8]
"""Records as bytes, one a line."""

_ROW_TYPE: Final = np.dtype([("block", "<u8"), ("slot", "<u4"), ("distance", "<u4")])


def unfold(slots: Records, indexes: npt.NDArray[np.intp]) -> Records:
    """A copy of the records in some slots. Heads of runs lie in `slots`, whether or not `indexes` has them.

    Costs nothing but a look at the kinds where there is no run; no Python step per row.
    """
    records: Records = slots[indexes]
    lines = np.flatnonzero(records[:, layout.KIND_OFFSET] == layout.ROW_KIND)
    if len(lines):
        tail = records[lines, layout.ROW_OFFSET : layout.ROW_OFFSET + _ROW_TYPE.itemsize]
        rows = np.ascontiguousarray(tail).view(_ROW_TYPE).reshape(-1)
        records[lines] = slots[(indexes[lines] - rows["distance"]) & (len(slots) - 1)]
        kinds = records[lines, layout.KIND_OFFSET]
        for number in np.unique(kinds):
            of_kind = kinds == number
            _fill(records, lines[of_kind], rows[of_kind], Kind(int(number)))
    return records


def _fill(records: Records, lines: npt.NDArray[np.intp], rows: npt.NDArray[Any], kind: Kind) -> None:
    """Make copies of the heads into the rows themselves."""
    offsets = layout.field_offsets(kind)
    _put(records, lines, offsets["block"], rows["block"])
    if "slot" in offsets:
        _put(records, lines, offsets["slot"], rows["slot"])
    for name in FIRST_ROW_ONLY & offsets.keys():
        records[lines, offsets[name] : offsets[name] + 8] = 0xFF
    if "id" in offsets:
        ids = _get(records, lines, offsets["id"], "<u8")
        _put(records, lines, offsets["id"], np.where(ids == NO_U64, ids, ids + rows["distance"]))
    if "parent" in offsets:
        _chain(records, lines, rows, offsets)


def _chain(records: Records, lines: npt.NDArray[np.intp], rows: npt.NDArray[Any], offsets: dict[str, int]) -> None:
    """The blocks of a `block_created` follow one another: each one's parent is the block before, its tokens come after."""
    parents = _get(records, lines, offsets["parent"], "<u8")
    before = _get(records, lines - 1, offsets["block"], "<u8")
    _put(records, lines, offsets["parent"], np.where(parents == NO_U64, parents, before))
    starts, tokens = (_get(records, lines, offsets[name], "<u4") for name in ("token_start", "tokens"))
    known = (starts != NO_U32) & (tokens != NO_U32)
    _put(records, lines, offsets["token_start"], np.where(known, starts + rows["distance"] * tokens, starts))


def _get(records: Records, lines: npt.NDArray[np.intp], offset: int, code: str) -> npt.NDArray[Any]:
    """One field of some records."""
    width = np.dtype(code).itemsize
    found: npt.NDArray[Any] = np.ascontiguousarray(records[lines, offset : offset + width]).view(code).reshape(-1)
    return found


def _put(records: Records, lines: npt.NDArray[np.intp], offset: int, values: npt.NDArray[Any]) -> None:
    """Set one field of some records."""
    width = values.dtype.itemsize
    records[lines, offset : offset + width] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)
