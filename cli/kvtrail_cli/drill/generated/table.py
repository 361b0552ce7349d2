"""A made population as the events that an engine would have told: columns, no objects; and nothing of what was broken."""

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
from kvtrail_collector.facts_rows import IntArray
from kvtrail_schema.arrow_schema import EVENT_SCHEMA
from kvtrail_schema.enums import Reason, Tier
from kvtrail_schema.kinds import Kind

from kvtrail_cli.drill.generated.load import NEIGHBOUR
from kvtrail_cli.drill.generated.ops import NOBODY, Ops
from kvtrail_cli.drill.generated.recorded import BLOCK_TOKENS
from kvtrail_cli.drill.generated.simulate import Trace

ENGINE: Final = "generated"
NEIGHBOUR_NAME: Final = "neighbour"
_BLOCK_BYTES: Final = 16_384
_TOKEN_NS: Final = 3_000_000
_ABSENT: Final = -1
Column = IntArray | int


class Rows:
    """Collects rows kind by kind; of those at one moment, what was added first comes first."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Kind, IntArray, dict[str, Column]]] = []
        self.texts: list[tuple[Kind, int, int, str]] = []

    def add(self, kind: Kind, t_ns: IntArray, **columns: Column) -> None:
        """Rows of one kind."""
        self._blocks.append((kind, t_ns, columns))

    def table(self) -> pa.Table:
        """All rows in the order of time, with engine, epoch and rank."""
        for kind, at_ns, ns, _ in self.texts:
            self.add(kind, np.array([at_ns]), **({} if ns < 0 else {"ns": ns}))
        lengths = [len(t_ns) for _, t_ns, _ in self._blocks]
        t_ns = np.concatenate([block[1] for block in self._blocks])
        order = np.argsort(t_ns, kind="stable")
        names = sorted({name for _, _, columns in self._blocks for name in columns})
        columns = {name: self._column(name, lengths)[order] for name in names}
        kinds = np.repeat([int(kind) for kind, _, _ in self._blocks], lengths)[order]
        made = {name: _arrow(name, values) for name, values in columns.items()}
        count = len(t_ns)
        made["seq"] = pa.array(np.arange(1, count + 1), pa.uint64())
        made["t_ns"] = pa.array(t_ns[order], pa.int64())
        made["kind"] = pa.array(kinds, pa.uint16())
        made["text"] = self._texts(order)
        made["engine"] = pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), [ENGINE])
        made["epoch"] = pa.array(np.ones(count), pa.uint64())
        made["rank"] = pa.array(np.zeros(count), pa.uint16())
        return pa.table(made)

    def _column(self, name: str, lengths: list[int]) -> IntArray:
        """One column of all blocks, absent where a block has none."""
        parts = [
            np.broadcast_to(np.asarray(columns.get(name, _ABSENT), dtype=np.int64), (length,))
            for (_, _, columns), length in zip(self._blocks, lengths, strict=True)
        ]
        return np.concatenate(parts)

    def _texts(self, order: IntArray) -> "pa.Array[Any]":
        """The column of texts: the last blocks have them."""
        first = len(order) - len(self.texts)
        index = np.where(order >= first, order - first, _ABSENT).astype(np.int32)
        known = pa.array([text for *_, text in self.texts], pa.utf8())
        return known.take(pa.array(index, pa.int32(), mask=index < 0))


def _arrow(name: str, values: IntArray) -> "pa.Array[Any]":
    """A column in its pinned type."""
    pinned = EVENT_SCHEMA.field(name).type
    plain = pinned.value_type if pa.types.is_dictionary(pinned) else pinned
    made: pa.Array[Any] = pa.array(values.astype(plain.to_pandas_dtype()), plain, mask=values == _ABSENT)
    return made if plain is pinned else made.cast(pinned)


def table_of(trace: Trace) -> pa.Table:
    """The events of a trace. Pure; about a microsecond a row."""
    rows = Rows()
    _tell_requests(rows, trace)
    _tell_ops(rows, trace.ops)
    _tell_prefetches(rows, trace)
    _tell_steps(rows, trace)
    _tell_lost(rows, trace)
    _declare(rows, np.unique(np.concatenate([trace.ops.tenant, trace.load.tenant])), int(trace.load.arrived_ns[0]))
    return rows.table()


def request_ids(trace: Trace) -> IntArray:
    """Requests are numbered from 1 in the order of arrival."""
    return np.arange(1, len(trace.load) + 1)


def _namespace(tenant: IntArray) -> IntArray:
    """Each tenant has a namespace of its own."""
    return tenant + 1001


def _tell_requests(rows: Rows, trace: Trace) -> None:
    """Arrival, lookup, waits, first token, end."""
    load, req = trace.load, request_ids(trace)
    rows.add(Kind.REQUEST_ARRIVED, load.arrived_ns, req=req, tokens=load.prompt_tokens, ns=_namespace(load.tenant))
    rows.add(Kind.REQUEST_WAITING, load.arrived_ns, req=req, reason=Reason.BUDGET)
    rows.add(
        Kind.LOOKUP_FINISHED,
        trace.looked_ns,
        req=req,
        duration_ns=trace.looked_ns - trace.lookup_start_ns,
        tokens=load.prompt_tokens,
        tokens_gpu=load.gpu_tokens,
        tokens_host=load.host_tokens,
        tokens_nvme=load.nvme_tokens,
    )
    waits = trace.waited_op != NOBODY
    rows.add(Kind.REQUEST_WAITING, trace.looked_ns[waits], req=req[waits], reason=Reason.KV_LOAD)
    rows.add(
        Kind.COPY_WAITED,
        trace.ready_ns[waits],
        req=req[waits],
        wait_ns=(trace.ready_ns - trace.looked_ns)[waits],
        op=trace.waited_op[waits] + 1,
        tier=trace.ops.tier[trace.waited_op[waits]],
    )
    rows.add(Kind.REQUEST_WAITING, trace.ready_ns[waits], req=req[waits], reason=Reason.BUDGET)
    rows.add(Kind.REQUEST_FIRST_TOKEN, trace.first_token_ns, req=req)
    ended = trace.first_token_ns + (load.output_tokens - 1) * _TOKEN_NS
    rows.add(Kind.REQUEST_FINISHED, ended, req=req, tokens=load.output_tokens, reason=Reason.LENGTH)


def _tell_ops(rows: Rows, ops: Ops) -> None:
    """Queued, started, and the end with its parts."""
    read = ops.is_read
    sorts = (
        (read, Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_STARTED, Kind.SWAP_IN_LOADED),
        (~read, Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_STARTED, Kind.SWAP_OUT_WRITTEN),
    )
    for which, queued, started, ended in sorts:
        place = np.flatnonzero(which)
        common = _op_columns(ops, place)
        rows.add(queued, ops.queued_ns[place], **common)
        rows.add(started, ops.started_ns[place], **common)
        done, failed = ~ops.is_failed[place], ops.is_failed[place]
        rows.add(ended, ops.closing_ns[place][done], **_at(common | _parts(ops, place), done))
        if failed.any():
            lost = _at(common | _parts(ops, place), failed)
            rows.add(Kind.SWAP_IN_FAILED, ops.closing_ns[place][failed], **lost, reason=Reason.TIMEOUT)


def _op_columns(ops: Ops, place: IntArray) -> dict[str, Column]:
    """What every row of an op says."""
    upper = np.where(ops.tier[place] == Tier.HOST, int(Tier.GPU), np.where(ops.request[place] == NOBODY, int(Tier.HOST), 0))
    read = ops.is_read[place]
    return {
        "op": place + 1,
        "src": np.where(read, ops.tier[place], upper),
        "dst": np.where(read, upper, ops.tier[place]),
        "block": place + 1,
        "slot": place % 8192,
        "bytes": ops.blocks[place] * _BLOCK_BYTES,
        "req": np.where(ops.request[place] == NOBODY, _ABSENT, ops.request[place] + 1),
        "prefetch": np.where(ops.is_ahead[place], place + 1, _ABSENT),
        "ns": _namespace(ops.tenant[place]),
    }


def _parts(ops: Ops, place: IntArray) -> dict[str, Column]:
    """Host copies are copies; what lies below it is read, but for a little."""
    host = ops.tier[place] == Tier.HOST
    service = ops.service_ns[place]
    copy = np.where(host, service, service // 64)
    return {"queue_ns": (ops.started_ns - ops.queued_ns)[place], "io_ns": service - copy, "copy_ns": copy}


def _at(columns: dict[str, Column], which: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> dict[str, Column]:
    """The columns of some rows."""
    return {name: values if isinstance(values, int) else values[which] for name, values in columns.items()}


def _tell_prefetches(rows: Rows, trace: Trace) -> None:
    """What was fetched ahead ends used, by whoever came for it, or wasted."""
    ops = trace.ops
    place = np.flatnonzero(ops.is_ahead)
    if not len(place):
        return
    common: dict[str, Column] = {"prefetch": place + 1, "block": place + 1, "ns": _namespace(ops.tenant[place])}
    moved = {name: _op_columns(ops, place)[name] for name in ("src", "dst", "bytes")}
    rows.add(Kind.PREFETCH_ISSUED, ops.queued_ns[place], **common, **moved)
    rows.add(Kind.PREFETCH_COMPLETED, ops.closing_ns[place], **common)
    rows.add(Kind.PREFETCH_READY, ops.closing_ns[place], **common)
    used = ops.used_by[place] != NOBODY
    who = ops.used_by[place][used]
    at_ns = np.maximum(trace.ready_ns[who], ops.closing_ns[place][used])
    rows.add(Kind.PREFETCH_USED, at_ns, **_at(common, used), req=who + 1)
    rows.add(Kind.PREFETCH_WASTED, ops.closing_ns[place][~used], **_at(common, ~used), reason=Reason.NEVER_NEEDED)


def _tell_steps(rows: Rows, trace: Trace) -> None:
    """Steps, admissions, and the chunks in them: what is computed again first, then what is new."""
    steps, number = trace.steps, np.arange(1, len(trace.steps.start_ns) + 1)
    rows.add(Kind.STEP_STARTED, steps.start_ns, step=number)
    _, first = np.unique(steps.chunk_request, return_index=True)
    rows.add(
        Kind.REQUEST_ADMITTED,
        steps.start_ns[steps.chunk_step[first]],
        req=steps.chunk_request[first] + 1,
        step=steps.chunk_step[first] + 1,
    )
    total = steps.prefill_tokens + steps.decode_tokens
    rows.add(Kind.STEP_FINISHED, steps.end_ns, step=number, tokens=total, prefill_tokens=steps.prefill_tokens)
    before = _before(steps.chunk_request, steps.chunk_tokens)
    for reason, low, high in _stretches(trace):
        start, end = np.maximum(before, low), np.minimum(before + steps.chunk_tokens, high)
        own = end > start
        rows.add(
            Kind.PREFILL_CHUNK,
            steps.end_ns[steps.chunk_step[own]],
            req=steps.chunk_request[own] + 1,
            step=steps.chunk_step[own] + 1,
            tokens=(end - start)[own],
            reason=reason,
        )


def _before(request: IntArray, tokens: IntArray) -> IntArray:
    """For each chunk, the tokens of its request that were computed before it."""
    order = np.argsort(request, kind="stable")
    until = np.cumsum(tokens[order])
    first = np.concatenate([[True], request[order][1:] != request[order][:-1]]) if len(order) else np.zeros(0, dtype=bool)
    base = np.maximum.accumulate(np.where(first, until - tokens[order], 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = until - tokens[order] - base
    return found


def _stretches(trace: Trace) -> list[tuple[Reason, IntArray, IntArray]]:
    """Of what each chunk's request computes: evicted tokens, then those whose load failed, then new ones; borders a chunk."""
    request = trace.steps.chunk_request
    lost = trace.lost_tokens[request]
    failed = lost + trace.failed_tokens[request]
    return [
        (Reason.EVICTED, np.zeros(len(request), dtype=np.int64), lost),
        (Reason.LOAD_FAILED, lost, failed),
        (Reason.NEW, failed, np.full(len(request), 2**31)),
    ]


def _tell_lost(rows: Rows, trace: Trace) -> None:
    """A block that is computed again was evicted shortly before: one row of each sort for each request that lost some."""
    lost = np.flatnonzero(trace.lost_tokens > 0)
    if not len(lost):
        return
    load, block = trace.load, 10_000_000 + lost
    common: dict[str, Column] = {"block": block, "ns": _namespace(load.tenant[lost])}
    slot = lost % 1024
    rows.add(
        Kind.EVICTED,
        load.arrived_ns[lost] - 400_000_000,
        **common,
        tier=Tier.GPU,
        slot=slot,
        reason=Reason.CAPACITY,
        id=20_000_000 + lost,
        bytes=_BLOCK_BYTES,
    )
    rows.add(
        Kind.PREFIX_MISS,
        trace.looked_ns[lost],
        **common,
        req=lost + 1,
        reason=Reason.GPU_POOL,
        tokens=BLOCK_TOKENS,
        cause=20_000_000 + lost,
    )
    rows.add(
        Kind.BLOCK_CREATED,
        trace.first_token_ns[lost],
        **common,
        req=lost + 1,
        tier=Tier.GPU,
        slot=slot,
        tokens=BLOCK_TOKENS,
        bytes=_BLOCK_BYTES,
    )


def _declare(rows: Rows, tenants: IntArray, first_ns: int) -> None:
    """What this engine is, and whose the namespaces are."""
    rows.texts.append((Kind.MANIFEST_DECLARED, first_ns - 1, _ABSENT, json.dumps({"device": "cpu-emulated"})))
    for tenant in tenants.tolist():
        text = json.dumps({"tenant": name_of(tenant), "model": "kvtrail-tiny"})
        rows.texts.append((Kind.NAMESPACE_DECLARED, first_ns - 1, 1001 + tenant, text))


def name_of(tenant: int) -> str:
    """What a tenant is called."""
    return NEIGHBOUR_NAME if tenant == NEIGHBOUR else f"tenant-{tenant}"
