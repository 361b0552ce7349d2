"""One side of a gate: what its requests took and how they ended, what broke in it, and what it says of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
from kvtrail_schema.kinds import Kind
from kvtrail_schema.reasons import SwapInFailReason

from kvtrail_collector.gate_shapes import GateEvent

_WORST: Final = 5
_REQUESTS: Final = f"""
SELECT stream_id, req, first_token_ns - arrived_ns AS ttft_ns, end_kind,
    CASE WHEN output_tokens > 1 THEN (ended_ns - first_token_ns) / (output_tokens - 1) END AS tpot_ns
FROM requests WHERE stream_id IN (SELECT unnest($streams)) AND arrived_ns IS NOT NULL
    AND (end_kind IS NOT NULL AND end_kind <> {Kind.REQUEST_CANCELLED.value}) ORDER BY arrived_ns
"""  # noqa: S608  # constants of ours
_EVENTS: Final = f"""
SELECT engine, epoch, rank, seq FROM events JOIN streams USING (stream_id)
WHERE stream_id = $stream AND req = $req AND kind = {Kind.REQUEST_FIRST_TOKEN.value}
"""  # noqa: S608  # as above
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


@dataclass(frozen=True, slots=True)
class Side:
    """Requests in the order of their arrival; those that their clients called off are left out.

    `ttft_ns` and `tpot_ns` are of those that got there; `rejected` is how many were refused, of `requests`.
    """

    requests: int
    rejected: int
    ttft_ns: Floats
    tpot_ns: Floats
    slowest: tuple[GateEvent, ...]
    broken: tuple[GateEvent, ...]
    """Loads whose bytes were not what was stored, or of somebody else."""
    manifest: dict[str, object]


def side_of(cursor: duckdb.DuckDBPyConnection, streams: list[int]) -> Side:
    """Read one side. One pass over its requests, and one over its failed loads."""
    given = {"streams": streams}
    rows = cursor.execute(_REQUESTS, given).fetchall()
    slowest = sorted((row for row in rows if row[2] is not None), key=lambda row: -row[2])[:_WORST]
    events = [cursor.execute(_EVENTS, {"stream": row[0], "req": row[1]}).fetchone() for row in slowest]
    return Side(
        requests=len(rows),
        rejected=sum(row[3] == Kind.REQUEST_REJECTED.value for row in rows),
        ttft_ns=np.array([row[2] for row in rows if row[2] is not None], dtype=np.float64),
        tpot_ns=np.array([row[4] for row in rows if row[4] is not None], dtype=np.float64),
        slowest=tuple(GateEvent(*event) for event in events if event is not None),
        broken=tuple(GateEvent(*row) for row in cursor.execute(_BROKEN, given).fetchall()),
        manifest=_manifest(cursor, streams),
    )


def _manifest(cursor: duckdb.DuckDBPyConnection, streams: list[int]) -> dict[str, object]:
    """The newest manifest, read with care: it is text from outside."""
    row = cursor.execute(_MANIFEST, {"streams": streams}).fetchone()
    try:
        members = json.loads(row[0]) if row is not None and row[0] else {}
    except (json.JSONDecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
