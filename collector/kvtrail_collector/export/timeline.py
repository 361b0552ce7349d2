"""The timeline of a stretch of time: requests, steps, transfers by tier, and the levels of tiers."""

from __future__ import annotations

from typing import Any, Final

import duckdb
from kvtrail_schema.kinds import Kind

from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.export.shapes import Process, Sample, Slice
from kvtrail_collector.questions.scope import IN_NAMESPACES, IN_STREAMS, Chosen
from kvtrail_collector.questions.words import tier_name

MOST_SLICES: Final = 1_000_000
"""More of them make a file that no viewer opens."""
_STREAMS: Final = f"""
SELECT stream_id, engine, rank, wall_ns - monotonic_ns FROM streams JOIN stream_marks USING (stream_id)
WHERE {IN_STREAMS} ORDER BY engine, rank, stream_id
"""  # noqa: S608  # constants of ours
# What is still open at the end of the window ends there; what touches the window is shown whole.
_REQUESTS: Final = f"""
SELECT stream_id, req, "text", arrived_ns, first_token_ns, ended_ns, prompt_tokens, output_tokens FROM requests
WHERE {IN_STREAMS} AND {IN_NAMESPACES} AND arrived_ns < $end_ns AND coalesce(ended_ns, $end_ns) >= $start_ns
LIMIT {MOST_SLICES + 1}
"""  # noqa: S608  # constants of ours
_OPS: Final = f"""
SELECT stream_id, op, src, dst, req, prefetch, queued_ns, started_ns, closed_ns, queue_ns, "bytes" FROM ops
WHERE {IN_STREAMS} AND queued_ns < $end_ns AND coalesce(closed_ns, $end_ns) >= $start_ns AND src IS NOT NULL AND dst IS NOT NULL
LIMIT {MOST_SLICES + 1}
"""  # noqa: S608  # constants of ours
_STEPS: Final = f"""
SELECT stream_id, step, min(t_ns), max(t_ns), max(prefill_tokens), max(decode_tokens) FROM events
WHERE {IN_STREAMS} AND kind IN ({Kind.STEP_STARTED.value}, {Kind.STEP_FINISHED.value}) AND t_ns >= $start_ns AND t_ns < $end_ns
GROUP BY stream_id, step LIMIT {MOST_SLICES + 1}
"""  # noqa: S608  # constants of ours
_LEVELS: Final = f"""
SELECT stream_id, tier, t_ns, used_bytes, depth FROM events
WHERE {IN_STREAMS} AND kind = {Kind.CAPACITY_SAMPLED.value} AND ns IS NULL AND tier IS NOT NULL
    AND t_ns >= $start_ns AND t_ns < $end_ns ORDER BY t_ns LIMIT {MOST_SLICES + 1}
"""  # noqa: S608  # constants of ours
_Row = tuple[Any, ...]
"""A row as DuckDB gives it: its columns are those of the query."""


def timeline(cursor: duckdb.DuckDBPyConnection, chosen: Chosen) -> list[Process]:
    """What happened in a scope, rank by rank; times on each engine's monotonic clock. Memory: some 500 bytes a slice.

    Raises:
        QuestionInvalid: it has more than `MOST_SLICES` slices.
    """
    between = {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}
    rows = cursor.execute(_STREAMS, {"streams": chosen.streams}).fetchall()
    found = {row[0]: Process(row[1], row[2], row[3], [], []) for row in rows}
    for row in _bounded(cursor.execute(_REQUESTS, chosen.values()).fetchall()):
        found[row[0]].slices.extend(_request(row, chosen.end_ns))
    for row in _bounded(cursor.execute(_OPS, between).fetchall()):
        found[row[0]].slices.extend(_op(row, chosen.end_ns))
    for row in _bounded(cursor.execute(_STEPS, between).fetchall()):
        notes = _notes(prefill_tokens=row[4], decode_tokens=row[5])
        found[row[0]].slices.append(Slice("steps", f"step {row[1]}", row[2], row[3], notes))
    for row in _bounded(cursor.execute(_LEVELS, between).fetchall()):
        found[row[0]].samples.extend(_level(row))
    return [process for process in found.values() if process.slices or process.samples]


def _bounded(rows: list[_Row]) -> list[_Row]:
    """Rows, if there are not more than anybody can look at."""
    if len(rows) > MOST_SLICES:
        what = f"there is more than {MOST_SLICES:,} of one kind in this window"
        raise QuestionInvalid(what, where="window", do="ask for a shorter one")
    return rows


def _request(row: _Row, now_ns: int) -> list[Slice]:
    """A request until its first token, and from there to its end."""
    _, req, text, arrived, first, ended, prompt, output = row
    name, notes = str(text or req), _notes(request=str(req), prompt_tokens=prompt, output_tokens=output)
    until = first if first is not None else ended if ended is not None else max(now_ns, arrived)
    waited = Slice("requests: to first token", name, arrived, until, notes)
    if first is None:
        return [waited]
    return [waited, Slice("requests: further tokens", name, first, ended if ended is not None else max(now_ns, first), notes)]


def _op(row: _Row, now_ns: int) -> list[Slice]:
    """A transfer: in the queue of its slower tier, and in service there."""
    _, op, src, dst, req, prefetch, queued, started, closed, queue, size = row
    tier, name = tier_name(max(src, dst)), f"{tier_name(src)} → {tier_name(dst)}"
    notes = _notes(op=str(op), request=None if req is None else str(req), bytes=size)
    notes |= _notes(prefetch=None if prefetch is None else str(prefetch))
    end = closed if closed is not None else max(now_ns, queued)
    begun = started if started is not None else min(queued + (queue or 0), end)
    begun = min(max(begun, queued), end)
    return [Slice(f"{tier}: in queue", name, queued, begun, notes), Slice(f"{tier}: transfers", name, begun, end, notes)]


def _level(row: _Row) -> list[Sample]:
    """The level of a tier: bytes used, and transfers that wait."""
    _, tier, at_ns, used, depth = row
    name = tier_name(tier)
    found = [Sample(f"{name}: used", "bytes", at_ns, used)] if used is not None else []
    return found + ([Sample(f"{name}: waiting", "transfers", at_ns, depth)] if depth is not None else [])


def _notes(**notes: int | str | None) -> dict[str, int | str]:
    """What is known of them."""
    return {name: value for name, value in notes.items() if value is not None}
