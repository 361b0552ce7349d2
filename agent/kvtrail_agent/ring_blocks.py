"""Many rows of one kind by one call, as runs: the form of the ring for a batch of blocks. Runs on the engine's threads."""

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kvtrail_schema.absent import NO_I64, NO_U32, NO_U64
from kvtrail_schema.block_rows import FIRST_ROW_ONLY
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.enums import Stage
from kvtrail_schema.kinds import FIELDS_OF, REQUIRED_OF, Kind
from kvtrail_schema.reasons import DropReason

from kvtrail_agent import ring_layout as layout
from kvtrail_agent.ring_writer import RingWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer  # in the standard library from Python 3.12 on

BLOCK_KINDS: Final = frozenset(kind for kind in Kind if "block" in FIELDS_OF[kind])
"""The kinds that have a block a row, and so can come in runs."""

_BY_ROW: Final = frozenset({"block", "slot"})
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one call: block ids, their places where there are any, and what holds for all of them."""

    kind: Kind
    blocks: Sequence[int]
    slots: Sequence[int] | None
    t_ns: int
    fields: Mapping[str, int]

    def values_at(self, row: int) -> list[int | float]:
        """The fields of the record that heads a run at this row, in their order."""
        fields = {**self.fields, **(self._later_fields(row) if row else {})}
        fields["block"] = self.blocks[row]
        fields["slot"] = self.slots[row] if self.slots is not None else NO_U32
        return [fields.get(name, COLUMNS[name].width.absent) for name in layout.record_fields(self.kind)]

    def _later_fields(self, row: int) -> dict[str, Any]:
        """What changes from the first row to a later one."""
        given = self.fields
        changes: dict[str, Any] = dict.fromkeys(FIRST_ROW_ONLY, NO_U64)
        if given.get("id", NO_U64) != NO_U64:
            changes["id"] = given["id"] + row & NO_U64
        if given.get("parent", NO_U64) != NO_U64:
            changes["parent"] = self.blocks[row - 1]
        if given.get("token_start", NO_U32) != NO_U32 and given.get("tokens", NO_U32) != NO_U32:
            changes["token_start"] = given["token_start"] + row * given["tokens"] & NO_U32
        return changes


class BlockWriter(RingWriter):
    """The columnar emit on top of a ring's writer."""

    def emit_blocks(
        self,
        kind: Kind,
        blocks: "Buffer | Iterable[int]",
        slots: "Buffer | Iterable[int] | None" = None,
        /,
        *,
        t_ns: int = NO_I64,
        **fields: int,
    ) -> int:
        """Record one row a block, all of one kind. Runs on the engine's threads; a few nanoseconds a row; never blocks.

        `blocks` is a buffer of unsigned 64-bit numbers (numpy, `array`) or any sequence of ids, `slots` one of unsigned
        32-bit numbers, as long; `fields` hold for all rows. What holds for a whole op (`*_ns` parts and estimates) stands on
        the first row; `id` counts up from the given one, so reserve one a row; the blocks of `block_created` are a chain,
        whose `parent` and `token_start` are those of the first.

        Returns the seq of the first row, the others follow it without a hole; 0 where nothing records, or of no rows. Rows
        that find no room, or whose values fit no field, are dropped and counted.

        Raises:
            TypeError: the kind has no block, or not these fields; as any call that does not match a signature.
        """
        if self._closed:
            return 0
        _check_call(kind, fields, has_slots=slots is not None)
        count = 1
        try:
            numbers = _numbers(blocks, _WORD, "QL")
            count = len(numbers)
            ids = numbers if isinstance(numbers, memoryview) else array("Q", numbers)
            places = None if slots is None else _slots(slots, count)
            rows = Rows(kind, ids, places, self._now_ns() if t_ns is NO_I64 else t_ns, fields)
            if count:
                layout.record_struct(kind).pack(rows.t_ns, *rows.values_at(0), kind, 0)
        except Exception:  # noqa: BLE001 - nothing may reach the engine; the loss is counted
            return self._refuse_rows(max(count, 1))
        return self._write_rows(rows) if count else 0

    def _draw_many(self, count: int) -> int:
        """The first of so many seqs in a row; 0 once closed."""
        drawing = itertools.islice(self._seqs, count)
        if self._closed:
            return 0
        return list(drawing)[0]  # noqa: RUF015 - all are drawn, in one step under the interpreter's lock

    def _refuse_rows(self, count: int) -> int:
        """Rows whose values are at fault: put them on the books."""
        first = self._draw_many(count)
        if first and self._has_room(first + count - 1):
            self._drop(Stage.ENCODE, DropReason.ENCODE_ERROR, first, first + count - 1)
        elif first:
            self._drop(Stage.RING, DropReason.FULL, first, first + count - 1)
        return first

    def _write_rows(self, rows: Rows) -> int:
        """Write rows as runs, each of which finds room whole or is dropped."""
        count, most = len(rows.blocks), layout.run_rows(self._ring.slot_count)
        first = self._draw_many(count)
        for start in range(0, count if first else 0, most):
            end = min(start + most, count)
            if self._has_room(first + end - 1):
                self._put_run(rows, start, end, first)
            else:
                self._drop(Stage.RING, DropReason.FULL, first + start, first + end - 1)
        return first

    def _put_run(self, rows: Rows, start: int, end: int, first: int) -> None:
        """One run: rows first, the head last, so that it is there whole or not at all."""
        pack, slots, mask = layout.ROW.pack_into, self._slots, self._mask
        for row in range(start + 1, end):
            seq = first + row
            place = NO_U32 if rows.slots is None else rows.slots[row]
            offset = ((seq & mask) << 7) + layout.ROW_OFFSET
            pack(slots, offset, rows.blocks[row], place, row - start, layout.ROW_KIND, _commit(seq))
        head, values = first + start, rows.values_at(start)
        layout.record_struct(rows.kind).pack_into(slots, (head & mask) << 7, rows.t_ns, *values, int(rows.kind), _commit(head))

    def _has_room(self, last_seq: int) -> bool:
        """Whether the slots up to a seq are free."""
        if last_seq > self._limit:
            self._limit = self._ring.word(layout.READ_SEQ) + self._mask + 1
        return last_seq <= self._limit


def _commit(seq: int) -> int:
    """The commit word of a seq."""
    return seq & layout.COMMIT_MASK or layout.COMMIT_OF_ZERO


def _check_call(kind: int, fields: Mapping[str, int], *, has_slots: bool) -> None:
    """See that a kind takes these fields.

    Raises:
        TypeError: it does not.
    """
    if kind not in BLOCK_KINDS:
        raise TypeError("emit_blocks() takes a kind that has a block")
    own, needed = FIELDS_OF[Kind(kind)], REQUIRED_OF[Kind(kind)]
    strange = [name for name in fields if name not in own or name in _BY_ROW]
    missing = [name for name in needed if name not in fields and name not in _BY_ROW]
    if strange or missing or ("slot" in needed and not has_slots) or (has_slots and "slot" not in own):
        problem = f"{Kind(kind).name.lower()}() of blocks: unexpected {strange}, missing {missing}; slots given: {has_slots}"
        raise TypeError(problem)


def _numbers(source: "Buffer | Iterable[int]", width: int, codes: str) -> Sequence[int]:
    """A buffer of plain unsigned numbers of one width as it is; anything else as a tuple of its items."""
    try:
        view = memoryview(source)  # type: ignore[arg-type]  # whether it is a buffer is what is being asked
    except TypeError:
        return tuple(source)  # type: ignore[arg-type]  # as above: it is none
    code = view.format.lstrip("<@=")
    if view.ndim == 1 and view.itemsize == width and len(code) == 1 and code in codes and view.c_contiguous:
        return view.cast("B").cast("Q" if width == _WORD else "I")
    return tuple(source)  # type: ignore[arg-type]  # a buffer of other numbers


def _slots(source: "Buffer | Iterable[int]", count: int) -> Sequence[int]:
    """The places of so many rows.

    Raises:
        ValueError: there are more or fewer.
    """
    numbers = _numbers(source, 4, "IL")
    if len(numbers) != count:
        raise ValueError("as many slots as blocks")
    return numbers if isinstance(numbers, memoryview) else array("I", numbers)
