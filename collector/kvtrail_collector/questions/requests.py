"""Requests from their projection: which one is meant, which were worst, how they did over time."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

import duckdb
import msgspec

from kvtrail_collector.questions.rows import StreamRow
from kvtrail_collector.questions.scope import Chosen


class Order(Enum):
    """By what a list of requests is ordered."""

    TTFT = "ttft"
    ARRIVAL = "arrival"


class RequestRow(msgspec.Struct, frozen=True):
    """One request. `ttft_ns` is None while it has no first token; it is `censored` then."""

    request: int
    text: str | None
    engine: str
    epoch: int
    rank: int
    arrived_ns: int
    arrived_wall_ns: int
    ttft_ns: int | None
    censored: bool
    prompt_tokens: int | None
    output_tokens: int | None


class SeriesRow(msgspec.Struct, frozen=True):
    """Requests of one engine that arrived in one bucket, and their times to first token; None where none has one."""

    engine: str
    start_ns: int
    wall_ns: int
    requests: int
    censored: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Found(NamedTuple):
    """The request that a caller meant, and its stream."""

    request: int
    stream: StreamRow


_WITHIN: Final = """
FROM requests JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE arrived_ns IS NOT NULL AND arrived_ns >= $start_ns AND arrived_ns < $end_ns
    AND stream_id IN (SELECT unnest($streams::INTEGER[]))
"""
_LIST: Final = f"""
SELECT req, "text", engine, epoch, rank, arrived_ns, arrived_ns + (wall_ns - monotonic_ns),
    first_token_ns - arrived_ns AS ttft_ns, first_token_ns IS NULL, prompt_tokens, output_tokens {_WITHIN}
"""  # a constant of ours
_ORDER_BY: Final = {
    Order.TTFT: "ORDER BY ttft_ns DESC NULLS LAST, arrived_ns, stream_id, req LIMIT $limit",
    Order.ARRIVAL: "ORDER BY arrived_ns, stream_id, req LIMIT $limit",
}
_SERIES: Final = f"""
WITH own AS (
    SELECT engine, arrived_ns - arrived_ns % $bucket_ns AS start_ns, wall_ns - monotonic_ns AS offset_ns,
        (first_token_ns - arrived_ns) / 1e6 AS ttft_ms {_WITHIN}
)
SELECT engine, start_ns, start_ns + max(offset_ns), count(*), count(*) - count(ttft_ms),
    quantile_cont(ttft_ms, 0.5), quantile_cont(ttft_ms, 0.95), quantile_cont(ttft_ms, 0.99)
FROM own GROUP BY engine, start_ns ORDER BY engine, start_ns
"""  # noqa: S608  # a constant of ours
_FIND: Final = """
SELECT req, stream_id, engine, epoch, rank
FROM requests JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE (req = $number OR "text" = $text) AND ($engine IS NULL OR engine = $engine)
    AND ($epoch IS NULL OR epoch = $epoch) AND ($rank IS NULL OR rank = $rank)
ORDER BY coalesce(arrived_ns >= $start_ns AND arrived_ns < $end_ns, false) DESC, coalesce(req = $number, false) DESC,
    heard_wall_ns DESC, stream_id DESC LIMIT 1
"""
_HANDLE: Final = re.compile(r"(\d{1,20}):(\d{1,5}):(\d{1,20})", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,20}", re.ASCII)
_IDS: Final = 2**64


def list_requests(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, order: Order, limit: int) -> list[RequestRow]:
    """The first `limit` requests of an order, of all tenants and models."""
    found = cursor.execute(f"{_LIST} {_ORDER_BY[order]}", {**_values(chosen), "limit": limit})
    return [RequestRow(*row) for row in found.fetchall()]


def request_series(cursor: duckdb.DuckDBPyConnection, chosen: Chosen, bucket_ns: int) -> list[SeriesRow]:
    """Counts and quantiles of TTFT by bucket of arrival; buckets in which nothing arrived are left out."""
    found = cursor.execute(_SERIES, {**_values(chosen), "bucket_ns": bucket_ns})
    return [SeriesRow(*row) for row in found.fetchall()]


def _values(chosen: Chosen) -> dict[str, object]:
    """What both ask of, for SQL."""
    return {"streams": chosen.streams, "start_ns": chosen.start_ns, "end_ns": chosen.end_ns}


def find_request(
    cursor: duckdb.DuckDBPyConnection, name: str, engine: str | None, within: tuple[int, int] | None = None
) -> Found | None:
    """The request with this number or, failing that, this engine-side text; or the one that is `epoch:rank:number`.

    An engine that starts anew counts from one again: of several requests that one is meant which arrived within a stretch of
    time, else the one last heard of.
    """
    start_ns, end_ns = within or (None, None)
    asked = {"text": name, "engine": engine, "start_ns": start_ns, "end_ns": end_ns, **_numbers(name)}
    row = cursor.execute(_FIND, asked).fetchone()
    return Found(row[0], StreamRow(*row[1:])) if row else None


def _numbers(name: str) -> dict[str, int | None]:
    """The numbers that a name is made of; no number where it is a text."""
    handle = _HANDLE.fullmatch(name)
    texts = handle.groups() if handle else (None, None, name if _NUMBER.fullmatch(name) else None)
    epoch, rank, number = (int(text) if text is not None and int(text) < _IDS else None for text in texts)
    return {"epoch": epoch, "rank": rank, "number": number}
