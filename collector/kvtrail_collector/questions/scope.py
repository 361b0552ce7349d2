"""What a question is about: one engine, rank, tenant or model, or all of them, and a stretch of time."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.rows import StreamRow, streams

EARLIEST_NS: Final = -(2**63)
LATEST_NS: Final = 2**63 - 1
_DECLARED: Final = """
SELECT DISTINCT ns, "text" FROM events
WHERE kind = ? AND ns IS NOT NULL AND "text" IS NOT NULL AND stream_id IN (SELECT unnest(?::INTEGER[])) ORDER BY ns
"""


class Scope(NamedTuple):
    """What was asked for; what is None is not narrowed. Times are on the engine's monotonic clock, [start, end)."""

    engine: str | None = None
    rank: int | None = None
    tenant: str | None = None
    model: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None


class Namespace(NamedTuple):
    """A namespace as it was declared: the hashed tenant and model of its id; None where none was set."""

    ns: int
    tenant: str | None
    model: str | None


class Chosen(NamedTuple):
    """A scope as values for SQL: streams, namespaces (all of them, where neither tenant nor model narrows), and bounds."""

    streams: list[int]
    every_namespace: bool
    namespaces: list[int]
    start_ns: int
    end_ns: int


IN_STREAMS: Final = "stream_id IN (SELECT unnest($streams::INTEGER[]))"
NEWEST_SAMPLED: Final = f"""
stream_id IN (
    SELECT max(stream_id) FROM events JOIN streams USING (stream_id)
    WHERE kind = {Kind.CAPACITY_SAMPLED.value} AND {IN_STREAMS} AND t_ns >= $start_ns AND t_ns < $end_ns GROUP BY engine, rank
)
"""  # noqa: S608  # constants of ours
"""Of each engine and rank the newest process that sampled its tiers in this time: what an ended one held, nobody holds."""
IN_NAMESPACES: Final = "($every_namespace OR ns IN (SELECT unnest($namespaces::UBIGINT[])))"


class _Declared(msgspec.Struct, frozen=True):
    """The members of a declaration that pages sort by."""

    tenant: str | None = None
    model: str | None = None


def streams_of(cursor: duckdb.DuckDBPyConnection, scope: Scope) -> list[StreamRow]:
    """The streams of an engine and rank."""
    return [one for one in streams(cursor) if scope.engine in {None, one.engine} and scope.rank in {None, one.rank}]


def namespaces_of(cursor: duckdb.DuckDBPyConnection, stream_ids: list[int]) -> list[Namespace]:
    """The namespaces that some streams declared; one that cannot be read has neither tenant nor model."""
    rows = cursor.execute(_DECLARED, [Kind.NAMESPACE_DECLARED.value, stream_ids]).fetchall()
    return [Namespace(ns, *_members(text)) for ns, text in rows]


def choose(cursor: duckdb.DuckDBPyConnection, scope: Scope) -> Chosen:
    """The values of a scope, for SQL. Two short queries."""
    stream_ids = [one.stream_id for one in streams_of(cursor, scope)]
    every = scope.tenant is None and scope.model is None
    fitting = [] if every else [one.ns for one in namespaces_of(cursor, stream_ids) if _fits(one, scope)]
    start_ns = EARLIEST_NS if scope.start_ns is None else scope.start_ns
    return Chosen(stream_ids, every, fitting, start_ns, LATEST_NS if scope.end_ns is None else scope.end_ns)


def _fits(namespace: Namespace, scope: Scope) -> bool:
    """Whether a namespace is the tenant's and the model's."""
    return scope.tenant in {None, namespace.tenant} and scope.model in {None, namespace.model}


def _members(text: str) -> tuple[str | None, str | None]:
    """Tenant and model of a declaration."""
    try:
        declared = msgspec.json.decode(text, type=_Declared)
    except msgspec.MsgspecError:
        return None, None
    return declared.tenant, declared.model
