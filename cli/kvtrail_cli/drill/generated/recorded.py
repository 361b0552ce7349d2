"""What is taken from a recorded run: the requests in their order, and how long ops, lookups and steps took."""

from collections.abc import Iterable
from typing import Final, Self

import msgspec
import numpy as np
import pyarrow as pa
from kvtrail_collector.facts_ops import OpColumns, op_columns
from kvtrail_collector.facts_rows import BoolArray, IdArray, IntArray, Rows, rows_of_table
from kvtrail_collector.facts_steps import step_columns
from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

BLOCK_TOKENS: Final = 32
_POINTS: Final = 201
_MOST: Final = 0.995
_LEAST_OPS: Final = 20
_CALM_FROM: Final = 0.2
"""So much of a run is left out at its beginning: its caches are cold."""


class Requests(msgspec.Struct, frozen=True):
    """Requests in the order of arrival: the gap before it, its prompt, what of it each tier had, whose it is by number."""

    gap_ns: list[int]
    prompt_tokens: list[int]
    gpu_tokens: list[int]
    host_tokens: list[int]
    nvme_tokens: list[int]
    output_tokens: list[int]
    tenant: list[int]


class Recorded(msgspec.Struct, frozen=True):
    """One healthy run, as far as it is needed to make others like it. Curves are 201 quantiles, in ns."""

    source: str
    device: str
    requests: Requests
    lookup_ns: list[int]
    host_read_ns: list[int]
    host_read_block_ns: int
    nvme_read_ns: list[int]
    nvme_read_block_ns: int
    nvme_write_ns: list[int]
    noticed_ns: list[int]
    step_ns: int
    prefill_token_ns: int
    decode_token_ns: int
    step_noise_ns: list[int]
    host_workers: int
    nvme_workers: int
    budget_tokens: int

    @classmethod
    def of_json(cls, raw: bytes) -> Self:
        """A recorded run from its file."""
        return msgspec.json.decode(raw, type=cls)


class Limits(msgspec.Struct, frozen=True):
    """What the engine's settings say and its events do not."""

    host_workers: int
    nvme_workers: int
    budget_tokens: int
    block_bytes: int


def recorded_of(table: pa.Table, source: str, limits: Limits) -> Recorded:
    """What a table of a healthy run's events tells. Pure; under a second."""
    rows = rows_of_table(table)
    ops = op_columns(rows)
    reads = (ops.load == 1) & (ops.end == 1)
    host_ns, host_block_ns = _service(ops, reads & (ops.tier == Tier.HOST), limits.block_bytes)
    nvme_ns, nvme_block_ns = _service(ops, reads & (ops.tier == Tier.NVME), limits.block_bytes)
    writes = (ops.load == 0) & (ops.end == 1) & (ops.tier == Tier.NVME)
    step_ns, prefill_ns, decode_ns, noise = _steps(rows)
    return Recorded(
        source=source,
        device="cpu-emulated",
        requests=_requests(rows, ops, limits.block_bytes),
        lookup_ns=curve(rows.ints["duration_ns"][rows.of_kinds(Kind.LOOKUP_FINISHED)]),
        host_read_ns=host_ns,
        host_read_block_ns=host_block_ns,
        nvme_read_ns=nvme_ns,
        nvme_read_block_ns=nvme_block_ns,
        nvme_write_ns=curve(ops.service_ns[writes]),
        noticed_ns=_noticed(rows, ops),
        step_ns=step_ns,
        prefill_token_ns=prefill_ns,
        decode_token_ns=decode_ns,
        step_noise_ns=noise,
        host_workers=limits.host_workers,
        nvme_workers=limits.nvme_workers,
        budget_tokens=limits.budget_tokens,
    )


def curve(values: IntArray | FloatArray) -> list[int]:
    """A distribution as 201 quantiles; zeros where nothing was seen.

    It ends at P99.5: what is beyond are hiccups of the machine that the engine ran on, too few to draw from.
    """
    if not len(values):
        return [0] * _POINTS
    return [int(value) for value in np.quantile(values, np.linspace(0, _MOST, _POINTS))]


def _requests(rows: Rows, ops: OpColumns, block_bytes: int) -> Requests:
    """The requests that finished, from when the caches were warm. What nobody computed or loaded was on the gpu."""
    arrived = rows.of_kinds(Kind.REQUEST_ARRIVED)
    arrived = arrived[rows.t_ns[arrived] >= _at(rows.t_ns[arrived], _CALM_FROM)]
    finished = rows.of_kinds(Kind.REQUEST_FINISHED)
    arrived = arrived[np.isin(rows.ids["req"][arrived], rows.ids["req"][finished])]
    req, prompt = rows.ids["req"][arrived], rows.ints["tokens"][arrived]
    chunks = rows.of_kinds(Kind.PREFILL_CHUNK)
    computed = _sums(req, rows.ids["req"][chunks], rows.ints["tokens"][chunks])
    tokens = ops.bytes * BLOCK_TOKENS // block_bytes
    read = (ops.load == 1) & (ops.end == 1)
    host, nvme = (_sums(req, ops.req[read & (ops.tier == tier)], tokens[read & (ops.tier == tier)]) for tier in _BELOW)
    return Requests(
        gap_ns=np.diff(rows.t_ns[arrived], prepend=rows.t_ns[arrived][:1]).tolist(),
        prompt_tokens=prompt.tolist(),
        gpu_tokens=np.maximum(prompt - computed - host - nvme, 0).tolist(),
        host_tokens=host.tolist(),
        nvme_tokens=nvme.tolist(),
        output_tokens=_sums(req, rows.ids["req"][finished], rows.ints["tokens"][finished]).tolist(),
        tenant=np.unique(rows.ids["ns"][arrived], return_inverse=True)[1].tolist(),
    )


_BELOW: Final = (Tier.HOST, Tier.NVME)


def _sums(wanted: IdArray, keys: IdArray, values: IntArray) -> IntArray:
    """The sum of the values of each wanted key; keys that nobody wants are left out."""
    order = np.argsort(wanted)
    place = np.minimum(np.searchsorted(wanted[order], keys), len(wanted) - 1)
    known = wanted[order][place] == keys
    return np.bincount(order[place[known]], weights=values[known], minlength=len(wanted)).astype(np.int64)


def _at(t_ns: IntArray, share: float) -> int:
    """The moment at a share of a run."""
    return int(t_ns.min() + (t_ns.max() - t_ns.min()) * share)


def _service(ops: OpColumns, chosen: BoolArray, block_bytes: int) -> tuple[list[int], int]:
    """What an op takes beside its blocks, as a curve, and what each block adds."""
    service, blocks = ops.service_ns[chosen].astype(np.float64), ops.bytes[chosen] / block_bytes
    if len(service) < _LEAST_OPS:
        return [0] * _POINTS, 0
    slope = float(np.polyfit(blocks, service, 1)[0]) if np.ptp(blocks) > 0 else 0.0
    each_ns = max(int(slope), 0)
    return curve(np.maximum(service - each_ns * blocks, 0)), each_ns


def _noticed(rows: Rows, ops: OpColumns) -> list[int]:
    """How long after its end the scheduler looked at an op that somebody waited for."""
    waits = rows.of_kinds(Kind.COPY_WAITED)
    closing = dict(zip(ops.op.tolist(), ops.closing_ns.tolist(), strict=True))
    pairs = zip(rows.ids["op"][waits].tolist(), rows.t_ns[waits].tolist(), strict=True)
    return curve(np.array([max(t_ns - closing[op], 0) for op, t_ns in pairs if closing.get(op, -1) >= 0], dtype=np.int64))


def _steps(rows: Rows) -> tuple[int, int, int, list[int]]:
    """What a step takes: a constant, a prefill token, a decode token, and what is left."""
    steps = step_columns(rows)
    whole = (steps.start_ns >= 0) & (steps.end_ns >= 0)
    length = (steps.end_ns - steps.start_ns)[whole].astype(np.float64)
    prefill = np.maximum(steps.prefill_tokens[whole], 0).astype(np.float64)
    decode = np.maximum(steps.tokens[whole], 0) - prefill
    design = np.stack([np.ones_like(length), prefill, decode], axis=1)
    usual = length < np.quantile(length, 0.9)
    found = np.maximum(np.linalg.lstsq(design[usual], length[usual], rcond=None)[0], 0)
    noise = curve(np.maximum(length - design @ found, 0))
    return int(found[0]), int(found[1]), int(found[2]), noise


def joined(runs: Iterable[Recorded]) -> list[Recorded]:
    """Those runs that have requests enough to make others from."""
    return [run for run in runs if len(run.requests.gap_ns) >= BLOCK_TOKENS]
