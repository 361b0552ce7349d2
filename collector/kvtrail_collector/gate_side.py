"""One side of a gate: what its requests took and how they ended, what broke in it, and what it says of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import SwapInFailReason

from kvtrail_collector.gate_shapes import GateEvent

_WORST: Final = 5
_REQUESTS: Final = """
WITH seen AS (SELECT stream_id, max(t_ns) AS until_ns FROM events WHERE stream_id IN (SELECT unnest($streams)) GROUP BY ALL)
SELECT stream_id, req, coalesce(end_kind, 0) AS end_kind, first_token_ns IS NULL AS is_censored,
    coalesce(first_token_ns, ended_ns, until_ns) - arrived_ns AS ttft_ns,
    CASE WHEN output_tokens > 1 THEN (ended_ns - first_token_ns) / (output_tokens - 1) END AS tpot_ns
FROM requests JOIN seen USING (stream_id) WHERE arrived_ns IS NOT NULL ORDER BY arrived_ns, stream_id, req
"""
_EVENT: Final = f"""
SELECT engine, epoch, rank, seq FROM events JOIN streams USING (stream_id)
WHERE stream_id = $stream AND req = $req AND kind IN ({Kind.REQUEST_ARRIVED.value}, {Kind.REQUEST_FIRST_TOKEN.value})
ORDER BY kind = {Kind.REQUEST_ARRIVED.value}, seq LIMIT 1
"""  # noqa: S608  # constants of ours
_BROKEN: Final = f"""
SELECT engine, epoch, rank, seq FROM events JOIN streams USING (stream_id)
WHERE stream_id IN (SELECT unnest($streams)) AND kind = {Kind.SWAP_IN_FAILED.value}
    AND reason IN ({SwapInFailReason.CHECKSUM.value}, {SwapInFailReason.PERMISSION.value}) ORDER BY stream_id, seq
"""  # noqa: S608  # as above
_MANIFEST: Final = f"""
SELECT "text" FROM events WHERE stream_id IN (SELECT unnest($streams)) AND kind = {Kind.MANIFEST_DECLARED.value}
ORDER BY stream_id DESC, seq DESC LIMIT 1
"""  # noqa: S608  # as above

Floats = npt.NDArray[np.float64]


class _Request(NamedTuple):
    """A request: its name, how it ended (0: it did not), and its latencies; a censored one had that long no first token."""

    stream_id: int
    req: int
    end_kind: int
    is_censored: bool
    ttft_ns: int
    tpot_ns: float | None

    @property
    def is_rejected(self) -> bool:
        """Whether it was refused: it has no latency."""
        return self.end_kind == Kind.REQUEST_REJECTED.value

    @property
    def is_unanswered(self) -> bool:
        """Whether it neither finished nor was refused: it hangs, or its client gave up."""
        return self.end_kind not in {Kind.REQUEST_FINISHED.value, Kind.REQUEST_REJECTED.value}


@dataclass(frozen=True, slots=True)
class Side:
    """Requests in the order of their arrival.

    Of `requests`, so many were `rejected`, and so many `unanswered`: called off by their clients, or without an end.
    `ttft_ns` has all that were not refused, those without a first token (`censored`) with their time so far; `tpot_ns` has
    those that finished.
    """

    requests: int
    rejected: int
    ttft_ns: Floats
    tpot_ns: Floats
    slowest: tuple[GateEvent, ...]
    broken: tuple[GateEvent, ...]
    """Loads whose bytes were not what was stored, or of somebody else."""
    manifest: dict[str, object]
    unanswered: int = 0
    censored: int = 0
    hanging: tuple[GateEvent, ...] = ()
    """Of some of the unanswered."""


def side_of(cursor: duckdb.DuckDBPyConnection, streams: list[int]) -> Side:
    """Read one side. One pass over its requests, and one over its failed loads."""
    given = {"streams": streams}
    rows = [_Request(*row) for row in cursor.execute(_REQUESTS, given).fetchall()]
    served = [row for row in rows if not row.is_rejected]
    unanswered = sorted((row for row in rows if row.is_unanswered), key=_by_ttft)
    return Side(
        requests=len(rows),
        rejected=len(rows) - len(served),
        ttft_ns=np.array([row.ttft_ns for row in served], dtype=np.float64),
        tpot_ns=np.array([row.tpot_ns for row in served if row.tpot_ns is not None], dtype=np.float64),
        slowest=_events(cursor, sorted(served, key=_by_ttft)[:_WORST]),
        broken=tuple(GateEvent(*row) for row in cursor.execute(_BROKEN, given).fetchall()),
        manifest=_manifest(cursor, streams),
        unanswered=len(unanswered),
        censored=sum(row.is_censored for row in served),
        hanging=_events(cursor, unanswered[:_WORST]),
    )


def _by_ttft(request: _Request) -> int:
    """The slowest first."""
    return -request.ttft_ns


def _events(cursor: duckdb.DuckDBPyConnection, requests: list[_Request]) -> tuple[GateEvent, ...]:
    """The first token of each, or its arrival."""
    found = [cursor.execute(_EVENT, {"stream": each.stream_id, "req": each.req}).fetchone() for each in requests]
    return tuple(GateEvent(*event) for event in found if event is not None)


def _manifest(cursor: duckdb.DuckDBPyConnection, streams: list[int]) -> dict[str, object]:
    """The newest manifest, read with care: it is text from outside."""
    row = cursor.execute(_MANIFEST, {"streams": streams}).fetchone()
    try:
        members = json.loads(row[0]) if row is not None and row[0] else {}
    except (json.JSONDecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
