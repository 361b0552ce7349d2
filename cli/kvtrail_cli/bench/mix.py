"""The events of the ingest benchmark: a hundred a request, as an engine under load with three tiers emits them.

A hard mix, not an easy one: request, block and parent ids are random 64-bit numbers, every event has a clock reading of
its own, and every transfer its own times. Requests overlap, so that a batch cuts hundreds of them in two. Six blocks of a
request come from nvme over host memory; sixteen are made, of which six are saved to nvme and six evicted. Events of the
same kind about the blocks of one op come from one call of the engine: they stand together, less than a microsecond apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from kvtrail_schema.arrow_schema import EVENT_SCHEMA
from kvtrail_schema.batch import VERSION, BatchHeader, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

BLOCKS_AN_OP: Final = 6
EPOCH_BEGINS_NS: Final = 3_600_000_000_000
REQUEST_EVERY_NS: Final = 200_000
"""500,000 events a second from one engine: what a collector must take, ten times what an engine is expected to record."""
_PHASE_NS: Final = 5_000_000
_ROW_NS: Final = 400
_BLOCK_BYTES: Final = 2 << 20
_IO_NS: Final = 900_000
_SLOTS: Final = 50_000
_MADE: Final = 16
_BLOCKS_A_REQUEST: Final = BLOCKS_AN_OP + _MADE
_SAVING: Final = 2
_SLOWER: Final = 6

_LOAD: Final = (Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED)
_SAVE: Final = (Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN)


def _transfer(kinds: tuple[Kind, ...], op: int) -> list[tuple[Kind, int]]:
    """One op: each of its kinds once a block."""
    return [(kind, op) for kind in kinds for _ in range(BLOCKS_AN_OP)]


STORY: Final[tuple[tuple[Kind, int], ...]] = (
    (Kind.REQUEST_ARRIVED, -1),
    (Kind.LOOKUP_FINISHED, -1),
    (Kind.PREFIX_HIT, -1),
    (Kind.REQUEST_WAITING, -1),
    *_transfer(_LOAD, 0),
    *_transfer(_LOAD, 1),
    (Kind.REQUEST_ADMITTED, -1),
    *[(Kind.BLOCK_CREATED, -1)] * _MADE,
    *[(Kind.STEP_STARTED, -1), (Kind.PREFILL_CHUNK, -1), (Kind.STEP_FINISHED, -1)] * 2,
    (Kind.REQUEST_FIRST_TOKEN, -1),
    *_transfer(_SAVE, _SAVING),
    *[(Kind.EVICTED, -1)] * 6,
    *[(Kind.TOKENS_EMITTED, -1)] * 11,
    (Kind.REQUEST_FINISHED, -1),
)
"""What happens to each request, in order, with the number of its op where it is part of one."""

EVENTS_A_REQUEST: Final = len(STORY)


@dataclass(frozen=True, slots=True)
class Mix:
    """Events of one stream. The same seed gives the same events; reads of the requests in `slow` take six times as long."""

    requests: int
    engine: str = "bench"
    epoch: int = 1
    seed: int = 0
    request_every_ns: int = REQUEST_EVERY_NS
    slow: tuple[int, int] = (0, 0)

    @property
    def events(self) -> int:
        """How many there are."""
        return self.requests * EVENTS_A_REQUEST

    def table(self) -> pa.Table:
        """All of them, seqs from 1, in the order of their times. About a microsecond an event; 120 bytes each."""
        draw = np.random.default_rng(self.seed)
        columns = _columns(self, draw)
        order = np.argsort(columns["t_ns"], kind="stable")
        mixed = {name: values[order] for name, values in columns.items()}
        mixed["seq"] = np.arange(1, self.events + 1, dtype=np.int64)
        arrays = [_array(mixed.get(field.name), field, self.events) for field in EVENT_SCHEMA]
        return pa.Table.from_arrays(arrays, schema=EVENT_SCHEMA)

    def frames(self, rows: int) -> Iterator[bytes]:
        """The events as they travel, in frames of so many rows."""
        yield from self.frames_of(self.table(), rows)

    def frames_of(self, table: pa.Table, rows: int) -> Iterator[bytes]:
        """A part of the events in frames of so many rows."""
        for first in range(0, table.num_rows, rows):
            part = table.slice(first, rows)
            yield encode_batch(self._header(part, int(part["seq"][0].as_py())), part)

    def _header(self, part: pa.Table, first_seq: int) -> BatchHeader:
        """The header of a part."""
        last_seq = first_seq + part.num_rows - 1
        now_ns = int(part["t_ns"][-1].as_py())
        return BatchHeader(
            version=VERSION,
            engine=self.engine,
            epoch=self.epoch,
            rank=0,
            first_seq=first_seq,
            last_seq=last_seq,
            count=part.num_rows,
            produced=last_seq,
            clocks=Clocks(monotonic_ns=now_ns, wall_ns=1_700_000_000_000_000_000 + now_ns, error_ns=100),
        )


ABSENT: Final = np.iinfo(np.int64).min


def _columns(mix: Mix, draw: np.random.Generator) -> dict[str, Numbers]:
    """The columns that hold anything, request after request; `ABSENT` where a row has no value."""
    shape = (mix.requests, EVENTS_A_REQUEST)
    kinds = np.array([kind.value for kind, _ in STORY], dtype=np.int64)
    ops = np.array([op for _, op in STORY], dtype=np.int64)
    begins = np.arange(mix.requests, dtype=np.int64)[:, None] * mix.request_every_ns
    follows = np.concatenate([[False], (kinds[1:] == kinds[:-1]) & (ops[1:] == ops[:-1])])
    gaps = np.where(follows, draw.integers(1, 2 * _ROW_NS, shape), draw.integers(1, 2 * _PHASE_NS, shape))
    factor = np.ones(shape, dtype=np.int64)
    factor[slice(*mix.slow)] = np.where(kinds == Kind.SWAP_IN_LOADED, _SLOWER, 1)
    gaps = np.where(follows, gaps, gaps * factor)
    columns = {"kind": np.broadcast_to(kinds, shape), "t_ns": EPOCH_BEGINS_NS + begins + np.cumsum(gaps, axis=1)}
    columns |= _ids(shape, kinds, ops, draw)
    columns |= _transfers(shape, kinds, ops, draw)
    columns["io_ns"] = np.where(columns["io_ns"] == ABSENT, ABSENT, columns["io_ns"] * factor)
    return {name: values.reshape(-1) for name, values in columns.items()}


def _ids(shape: tuple[int, int], kinds: Numbers, ops: Numbers, draw: np.random.Generator) -> dict[str, Numbers]:
    """Whose events they are."""
    requests = np.arange(shape[0], dtype=np.int64)[:, None]
    steps = np.isin(kinds, [Kind.STEP_STARTED, Kind.STEP_FINISHED])
    with_block = (ops >= 0) | np.isin(kinds, [Kind.BLOCK_CREATED, Kind.EVICTED, Kind.PREFIX_HIT])
    req = draw.integers(1, 2**63 - 1, (shape[0], 1))
    pool = draw.integers(1, 2**63 - 1, (shape[0], _BLOCKS_A_REQUEST))
    place = _block_places(kinds, ops)
    slots = draw.integers(0, _SLOTS, (shape[0], _BLOCKS_A_REQUEST))
    return {
        "req": _where(~steps & (kinds != Kind.EVICTED), np.broadcast_to(req, shape)),
        "block": _where(with_block, pool[:, place]),
        "parent": _where(kinds == Kind.BLOCK_CREATED, pool[:, place - 1]),
        "ns": _where(kinds == Kind.REQUEST_ARRIVED, np.full(shape, 77)),
        "slot": _where(with_block & (kinds != Kind.PREFIX_HIT), slots[:, place]),
        "op": _where(ops >= 0, 3 * requests + ops),
        "step": _where(
            steps | np.isin(kinds, [Kind.PREFILL_CHUNK, Kind.TOKENS_EMITTED]), np.broadcast_to(requests // 4, shape)
        ),
    }


def _block_places(kinds: Numbers, ops: Numbers) -> Numbers:
    """Which of its request's blocks each event of the story is about."""
    nth = np.array([int((kinds[:at] == kind).sum()) for at, kind in enumerate(kinds)])
    saved = np.where(ops == _SAVING, BLOCKS_AN_OP + nth % BLOCKS_AN_OP, nth % BLOCKS_AN_OP)
    made = np.where(kinds == Kind.BLOCK_CREATED, BLOCKS_AN_OP + nth, 2 * BLOCKS_AN_OP + nth % BLOCKS_AN_OP)
    places: Numbers = np.where(ops >= 0, saved, made)
    return places


def _transfers(shape: tuple[int, int], kinds: Numbers, ops: Numbers, draw: np.random.Generator) -> dict[str, Numbers]:
    """Where things went, how much, and how long it took."""
    closing = np.isin(kinds, [Kind.SWAP_IN_LOADED, Kind.SWAP_OUT_WRITTEN])
    first = closing & np.concatenate([[True], kinds[1:] != kinds[:-1]])
    src = np.choose(np.maximum(ops, 0), [Tier.NVME, Tier.HOST, Tier.GPU]).astype(np.int64)
    dst = np.choose(np.maximum(ops, 0), [Tier.HOST, Tier.GPU, Tier.NVME]).astype(np.int64)
    sizes = np.isin(kinds, _WITH_TOKENS)
    placed = np.isin(kinds, [Kind.BLOCK_CREATED, Kind.EVICTED, Kind.PREFIX_HIT])
    reasons = np.full(kinds.shape, ABSENT)
    for kind, reason in _REASONS.items():
        reasons[kinds == kind] = reason
    return {
        "src": _where(ops >= 0, np.broadcast_to(src, shape)),
        "dst": _where(ops >= 0, np.broadcast_to(dst, shape)),
        "tier": _where(placed, np.full(shape, Tier.GPU.value)),
        "bytes": _where(closing, np.full(shape, _BLOCK_BYTES)),
        "tokens": _where(sizes, draw.integers(1, 4_000, shape)),
        "reason": np.broadcast_to(reasons, shape),
        "queue_ns": _where(first, draw.integers(0, _IO_NS, shape)),
        "io_ns": _where(first, draw.integers(_IO_NS // 2, 2 * _IO_NS, shape)),
        "copy_ns": _where(first, draw.integers(10_000, 200_000, shape)),
        "duration_ns": _where(kinds == Kind.LOOKUP_FINISHED, draw.integers(5_000, 80_000, shape)),
    }


_WITH_TOKENS: Final = [
    Kind.REQUEST_ARRIVED,
    Kind.REQUEST_FINISHED,
    Kind.PREFILL_CHUNK,
    Kind.TOKENS_EMITTED,
    Kind.STEP_FINISHED,
    Kind.LOOKUP_FINISHED,
]
_REASONS: Final = {
    Kind.REQUEST_WAITING: Reason.KV_LOAD.value,
    Kind.PREFILL_CHUNK: Reason.NEW.value,
    Kind.EVICTED: Reason.CAPACITY.value,
    Kind.REQUEST_FINISHED: Reason.STOP.value,
}


def _where(places: NDArray[np.bool_], values: Numbers) -> Numbers:
    """Values in some places, nothing in the others."""
    return np.where(places, values, ABSENT)


def _array(values: Numbers | None, field: pa.Field[Any], rows: int) -> pa.Array[Any]:
    """A column of the pinned type."""
    if values is None:
        empty: pa.Array[Any] = pa.nulls(rows, field.type)
        return empty
    plain: pa.Array[Any] = pa.array(values, pa.int64(), mask=values == ABSENT)
    cast: pa.Array[Any] = plain.cast(field.type)
    return cast
