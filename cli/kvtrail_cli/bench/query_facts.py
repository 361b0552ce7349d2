"""Facts of many requests with 41 intervals each, drawn as columns: what the ledger alone is measured on."""

from typing import Final

import numpy as np
from kvtrail_collector.facts import Timeline
from kvtrail_collector.facts_columns import (
    ChunkColumns,
    FactColumns,
    RequestColumns,
    SpanColumns,
    StateColumns,
    WaitColumns,
)
from kvtrail_collector.facts_join import RequestIndex
from kvtrail_collector.facts_ops import OpColumns
from kvtrail_collector.facts_rows import NO_ID, NO_INT, IntArray
from kvtrail_schema.enums import Reason
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.kinds import Kind

INTERVALS: Final = 41
"""Six ops of six parts, one lookup, one explicit wait, three chunks; states not counted."""

_MS: Final = 1_000_000
_OPS: Final = 6
_CHUNKS_AT: Final = (60, 80, 100)
_CHUNK_NS: Final = 18 * _MS
_STEP_EVERY_NS: Final = 20 * _MS


def drawn_facts(requests: int, seed: int = 0) -> FactColumns:
    """Requests of 50 to 400 ms that overlap, each with loads that overlap, in one stream whose steps hardly ever pause."""
    draw = np.random.default_rng(seed)
    arrived = np.sort(draw.integers(0, requests * 200_000, requests))
    end = arrived + draw.integers(50 * _MS, 400 * _MS, requests)
    owner = np.repeat(np.arange(requests), _OPS)
    return FactColumns(
        requests=_requests(arrived, end),
        states=_states(arrived),
        lookups=SpanColumns(np.arange(requests), arrived, arrived + draw.integers(0, _MS, requests)),
        waits=WaitColumns(np.arange(requests), arrived + 70 * _MS, arrived + 72 * _MS, np.arange(requests) * _OPS),
        chunks=_chunks(arrived),
        own_request=owner,
        own_op=np.arange(len(owner)),
        ops=_ops(arrived, owner, draw),
        timelines=(_timeline(int(end.max())),),
        index=RequestIndex(_ids(requests), np.arange(requests), np.arange(requests)),
    )


def _ids(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Ids from 0 on."""
    return np.arange(count, dtype=np.uint64)


def _requests(arrived: IntArray, end: IntArray) -> RequestColumns:
    """Requests that all got their first token."""
    count, zeros = len(arrived), np.zeros(len(arrived), dtype=np.int64)
    return RequestColumns(
        row=np.arange(count),
        stream=zeros,
        req=_ids(count),
        ns=np.full(count, NO_ID),
        tokens=zeros + 100,
        arrived_ns=arrived,
        end_ns=end,
        end=zeros,
    )


def _states(arrived: IntArray) -> StateColumns:
    """Each waits for room, then for its loads, then it is admitted."""
    request, step = np.repeat(np.arange(len(arrived)), 3), np.tile(np.arange(3), len(arrived))
    kinds = np.array([Kind.REQUEST_WAITING, Kind.REQUEST_WAITING, Kind.REQUEST_ADMITTED])
    reasons = np.array([Reason.CAPACITY, Reason.KV_LOAD, NO_INT])
    after = np.array([1_000, 5 * _MS, 30 * _MS])
    return StateColumns(request, arrived[request] + after[step], kinds[step], reasons[step])


def _chunks(arrived: IntArray) -> ChunkColumns:
    """Three steps of prefill."""
    request = np.repeat(np.arange(len(arrived)), len(_CHUNKS_AT))
    start = arrived[request] + np.tile(np.array(_CHUNKS_AT), len(arrived)) * _MS
    full, known = np.full(len(request), 64), np.ones(len(request), dtype=np.bool_)
    reason = np.full(len(request), Reason.NEW.value)
    return ChunkColumns(request, start, start + _CHUNK_NS, full, reason, known, _ids(len(request)))


def _ops(arrived: IntArray, owner: IntArray, draw: np.random.Generator) -> OpColumns:
    """Loads with six parts each, and a little until somebody notices."""
    count = len(owner)
    parts = draw.integers(0, 8 * _MS, (count, 6))
    queued = arrived[owner] + draw.integers(0, 40 * _MS, count)
    absent, zeros = np.full(count, NO_ID), np.zeros(count, dtype=np.int64)
    return OpColumns(
        stream=zeros,
        op=_ids(count),
        load=zeros + 1,
        src=draw.integers(1, 4, count),
        dst=zeros,
        queued_ns=queued,
        started_ns=queued + parts[:, 0],
        closing_ns=queued + parts.sum(axis=1) + draw.integers(0, _MS, count),
        parts_ns=parts,
        bytes=zeros + (1 << 20),
        req=owner.astype(np.uint64),
        prefetch=absent,
        ns=absent,
        queue=zeros + NO_INT,
        end=zeros + 1,
        seq=_ids(count),
    )


def _timeline(last_ns: int) -> Timeline:
    """Steps that pause for a twentieth of the time."""
    starts = np.arange(0, last_ns, _STEP_EVERY_NS)
    length = _STEP_EVERY_NS - _MS
    busy = tuple((start, start + length) for start in starts.tolist())
    before = tuple((np.arange(len(busy)) * length).tolist())
    return Timeline(Stream("bench", Epoch(1), Rank(0)), busy, tuple(starts.tolist()), before, (), (), last_ns)
