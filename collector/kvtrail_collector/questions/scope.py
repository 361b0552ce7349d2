"""What a question is about: one engine, rank, tenant or model, or all of them, and a stretch of time."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import msgspec
from kvtrail_schema.kinds import Kind

from kvtrail_collector.questions.clocks import clocks_of
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
    """A scope as values for SQL: streams, namespaces (all of them, where neither tenant nor model narrows), and bounds.

    `left_out` are streams of the same engine and rank on clocks of before: their monotonic times are others.
    """

    streams: list[int]
    every_namespace: bool
    namespaces: list[int]
    start_ns: int
    end_ns: int
    left_out: tuple[int, ...] = ()

    @property
    def of_all_time(self) -> list[int]:
        """The streams of every clock, for what is told in times of day; of a stretch of time those of its own clock."""
        is_open = (self.start_ns, self.end_ns) == (EARLIEST_NS, LATEST_NS)
        return [*self.streams, *self.left_out] if is_open else self.streams

    def values(self) -> dict[str, object]:
        """The parameters of the terms below."""
        return {name: value for name, value in self._asdict().items() if name != "left_out"}


IN_STREAMS: Final = "stream_id IN (SELECT unnest($streams::INTEGER[]))"


def newest_of(condition: str) -> str:
    """The query of the process, of each engine and rank, whose event of a condition is the newest in time of day.

    Processes are not numbered in the order in which they ran: what one kept while it could not send comes late.
    """
    last = "max(t_ns) + any_value(coalesce(wall_ns - monotonic_ns, 0))"
    return f"""
    SELECT stream_id FROM events JOIN streams USING (stream_id) LEFT JOIN stream_marks USING (stream_id)
    WHERE {condition} AND {IN_STREAMS} AND t_ns < $end_ns GROUP BY engine, rank, stream_id
    QUALIFY row_number() OVER (PARTITION BY engine, rank ORDER BY {last} DESC, stream_id DESC) = 1
    """  # noqa: S608  # constants of ours


NEWEST_SAMPLED: Final = f"""
stream_id IN ({newest_of(f"kind = {Kind.CAPACITY_SAMPLED.value} AND t_ns >= $start_ns")})
"""  # constants of ours
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
    """The values of a scope, for SQL. Three short queries."""
    known = streams_of(cursor, scope._replace(rank=None))
    on_clock = {one.stream_id for one in clocks_of(cursor, known, scope.start_ns)}
    own = [one.stream_id for one in known if scope.rank in {None, one.rank}]
    stream_ids = [one for one in own if one in on_clock]
    every = scope.tenant is None and scope.model is None
    fitting = [] if every else [one.ns for one in namespaces_of(cursor, stream_ids) if _fits(one, scope)]
    start_ns = EARLIEST_NS if scope.start_ns is None else scope.start_ns
    end_ns = LATEST_NS if scope.end_ns is None else scope.end_ns
    left_out = tuple(one for one in own if one not in on_clock)
    return Chosen(stream_ids, every, fitting, start_ns, end_ns, left_out)


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
