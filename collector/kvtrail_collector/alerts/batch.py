"""The rows of one commit that rules look at, stream by stream, as columns; the others are left out unconverted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NS_S: Final = 1_000_000_000
NONE: Final = -1
"""What stands in a column of whole numbers for "absent"; ids are read modulo 2^63, so none is negative."""

_NAMES: Final = {tier.value: tier.name.lower() for tier in Tier}
_KINDS: Final = (
    *(
        Kind.COPY_WAITED,
        Kind.RESTORE_CHOSEN,
        Kind.RECOMPUTE_CHOSEN,
        Kind.PREFILL_CHUNK,
        Kind.GPU_SAMPLED,
        Kind.CAPACITY_SAMPLED,
    ),
    *(Kind.PREFETCH_ISSUED, Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.REQUEST_ARRIVED, Kind.REQUEST_ADMITTED),
    *(Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED, Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_IN_FAILED),
    *(Kind.SWAP_OUT_FAILED, Kind.PREFIX_HIT, Kind.ATTENTION_READ, Kind.BLOCK_CREATED, Kind.INVALIDATED),
    *(Kind.PREFETCH_CANCELLED, Kind.PREFETCH_SKIPPED),
    *(Kind.DEGRADE_REQUESTED, Kind.DEGRADE_APPLIED, Kind.DEGRADE_CLEARED),
)
_WANTED: Final = pa.array([kind.value for kind in _KINDS], pa.uint16())
_TIER_COLUMNS: Final = ("tier", "src", "dst")
_LARGEST: Final = 2**63 - 1
NEEDED: Final = (
    *("stream_id", "seq", "kind", "t_ns", "text", "tier", "src", "dst", "block", "ns", "req", "op", "prefetch", "reason"),
    *("tokens", "wait_ns", "recompute_estimate_ns", "device", "idle_pct", "capacity_bytes", "used_bytes", "evictable_bytes"),
    *("pinned_bytes", "depth", "in_flight", "pending_prefetch", "orphans", "connections", "free_bytes"),
)
"""The columns that anybody who looks at rows asks for; the others are not carried along."""


class Origin(NamedTuple):
    """Whose rows they are, and what takes its monotonic clock to wall time."""

    engine: str
    rank: int
    wall_minus_monotonic_ns: int


class Rows:
    """Rows of one stream in the order of seq, each column converted when it is first asked for."""

    def __init__(self, table: pa.Table, origin: Origin) -> None:
        seqs = table["seq"].to_numpy()
        self._table = table if bool(np.all(seqs[1:] >= seqs[:-1])) else table.sort_by("seq")
        self._columns: dict[str, Ints] = {}
        self.origin = origin
        self.kind = self.ints("kind")
        self.wall_ns: Ints = self.ints("t_ns") + origin.wall_minus_monotonic_ns
        self.second: Ints = self.wall_ns // NS_S

    def of(self, *kinds: Kind) -> Ints:
        """The places of rows of some kinds."""
        return np.flatnonzero(np.isin(self.kind, [kind.value for kind in kinds]))

    def ints(self, name: str) -> Ints:
        """A column of whole numbers."""
        if name not in self._columns:
            column = self._table[name].combine_chunks()
            filled = column.fill_null(0).to_numpy(zero_copy_only=False)
            whole = (filled & np.uint64(_LARGEST) if filled.dtype == np.uint64 else filled).astype(np.int64)
            self._columns[name] = np.where(column.is_valid().to_numpy(zero_copy_only=False), whole, NONE)
        return self._columns[name]

    def floats(self, name: str) -> Floats:
        """A column of floats; absent is not a number."""
        column = self._table[name].combine_chunks().cast(pa.float64())
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)

    def text(self, place: int) -> str:
        """The text of a row."""
        return self._table["text"][place].as_py() or ""

    def tiers(self, *columns: str) -> dict[int, Ints]:
        """Which tiers stand in these columns, and the larger (slower) of them for each row."""
        slower = np.max([self.ints(name) for name in columns or _TIER_COLUMNS], axis=0)
        return {int(tier): np.flatnonzero(slower == tier) for tier in np.unique(slower).tolist() if tier in _NAMES}


def tier_name(number: int) -> str:
    """What people read for a tier; an empty text for one that this version does not know."""
    return _NAMES.get(number, "")


def rows_by_stream(table: pa.Table, origins: Mapping[int, Origin]) -> Iterator[Rows]:
    """What of a commit's rows rules look at. Costs one look at each row's kind, and a copy of what is kept of those."""
    wanted = table.select(NEEDED).filter(pc.is_in(table["kind"], value_set=_WANTED))
    streams = wanted["stream_id"].to_numpy()
    found = np.unique(streams).tolist()
    for stream_id in found:
        if stream_id in origins:
            own = wanted if len(found) == 1 else wanted.filter(pa.array(streams == stream_id))
            yield Rows(own, origins[stream_id])
