"""The pinned columns of an event: one name, one width, one meaning, wherever it stands (EVENTS §1).

Records of fixed size have no room for a presence map, so each width sets one value aside to say "absent": the largest
unsigned, the smallest signed, NaN. A field may therefore not hold that value, and `within_range` refuses it.
"""

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from kvtrail_schema.enums import Dtype, Path, Reason, Stage, Tier


class Width(Enum):
    """How wide a column is: its `struct` code, and the value that says "absent"."""

    U8 = ("u8", "B", 2**8 - 1)
    U16 = ("u16", "H", 2**16 - 1)
    U32 = ("u32", "I", 2**32 - 1)
    U64 = ("u64", "Q", 2**64 - 1)
    I16 = ("i16", "h", -(2**15))
    I64 = ("i64", "q", -(2**63))
    F64 = ("f64", "d", math.nan)
    BOOL = ("bool", "B", 2**8 - 1)
    TEXT = ("text", "QI", 0)
    TRACE = ("trace", "16s", 0)

    @property
    def code(self) -> str:
        """The code of this width in the format of a fixed record."""
        return str(self.value[1])

    @property
    def absent(self) -> int | float:
        """The value that stands for "absent" in a fixed record."""
        absent: int | float = self.value[2]
        return absent


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the event schema; `names` lists the members where it is an enum."""

    name: str
    width: Width
    names: type[IntEnum] | None = None


def _columns(width: Width, names: str) -> list[Column]:
    """Columns of one width, named in one text."""
    return [Column(name, width) for name in names.split()]


COLUMNS: Final[dict[str, Column]] = {
    column.name: column
    for column in [
        *_columns(Width.U64, "seq"),
        *_columns(Width.I64, "t_ns"),
        *_columns(Width.U16, "kind"),
        *_columns(Width.U64, "ns req block parent"),
        Column("tier", Width.U8, Tier),
        Column("src", Width.U8, Tier),
        Column("dst", Width.U8, Tier),
        *_columns(Width.U32, "slot"),
        *_columns(Width.U64, "op prefetch step id cause bytes"),
        *_columns(Width.U32, "tokens token_start"),
        *_columns(Width.U64, "queue_ns alloc_ns submit_ns io_ns copy_ns sync_ns wait_ns duration_ns"),
        *_columns(Width.U64, "restore_estimate_ns recompute_estimate_ns keep_estimate_ns"),
        *_columns(Width.I64, "deadline_ns"),
        *_columns(Width.U8, "priority"),
        *_columns(Width.U32, "refs depth"),
        Column("dtype", Width.U8, Dtype),
        Column("path", Width.U8, Path),
        *_columns(Width.BOOL, "pinned"),
        *_columns(Width.I16, "numa device_numa"),
        *_columns(Width.U16, "device queue"),
        Column("reason", Width.U8, Reason),
        *_columns(Width.U64, "prefill_tokens decode_tokens device_ns"),
        *_columns(Width.U64, "tokens_gpu tokens_host tokens_nvme tokens_remote"),
        *_columns(Width.U64, "capacity_bytes used_bytes free_bytes pinned_bytes evictable_bytes"),
        *_columns(Width.U64, "in_flight pending_prefetch orphans largest_hole_bytes connections"),
        *_columns(Width.F64, "utilisation_pct idle_pct"),
        *_columns(Width.U64, "memory_bytes"),
        *_columns(Width.F64, "pcie_rx_bytes_per_s pcie_tx_bytes_per_s"),
        *_columns(Width.U64, "power_mw produced"),
        *_columns(Width.BOOL, "drained"),
        Column("stage", Width.U8, Stage),
        *_columns(Width.U64, "previous_epoch first_seq last_seq count"),
        *_columns(Width.F64, "value"),
        *_columns(Width.TRACE, "trace_id"),
        *_columns(Width.TEXT, "text"),
    ]
}

_LIMITS: Final[dict[Width, tuple[int, int]]] = {
    Width.U8: (0, 2**8 - 2),
    Width.U16: (0, 2**16 - 2),
    Width.U32: (0, 2**32 - 2),
    Width.U64: (0, 2**64 - 2),
    Width.I16: (-(2**15) + 1, 2**15 - 1),
    Width.I64: (-(2**63) + 1, 2**63 - 1),
}


def limits(width: Width) -> tuple[int, int] | None:
    """The smallest and largest value that a column of this width may hold; None where it holds no integer."""
    return _LIMITS.get(width)


def within_range(name: str, value: object) -> bool:
    """Whether a number fits its column: an integer its width, a float nothing but that it is finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    bounds = _LIMITS.get(COLUMNS[name].width)
    return bounds is None or not isinstance(value, int) or bounds[0] <= value <= bounds[1]
