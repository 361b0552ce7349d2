"""`GET /v1/requests`, `/v1/requests/{id}`, `/v1/series` and `/v1/blocks/{hash}`: which requests were slow, when, and why."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.answers import span_of
from kvtrail_collector.context import Context
from kvtrail_collector.questions.requests import Order, RequestRow, SeriesRow, list_requests, request_series
from kvtrail_collector.questions.scope import Scope as Asked
from kvtrail_collector.questions.scope import choose
from kvtrail_collector.replies import reply
from kvtrail_collector.routes.asked import Moment
from kvtrail_collector.security import Scope

_NS_PER_MS: Final = 1_000_000
_Limit = Annotated[int, Query(ge=1, le=1_000)]
_BucketMs = Annotated[int, Query(ge=10, le=86_400_000)]


class Requests(msgspec.Struct, frozen=True):
    """A list of requests."""

    requests: list[RequestRow]
    device: str | None = None
    schema: int = 1


class Series(msgspec.Struct, frozen=True):
    """TTFT over time, by engine and bucket of arrival."""

    bucket_ms: int
    series: list[SeriesRow]
    device: str | None = None
    schema: int = 1


def request_routes(context: Context) -> APIRouter:
    """Questions about requests. All run on worker threads."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])

    @router.get("/v1/requests")
    def requests(
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        engine: str | None = None,
        order: Order = Order.TTFT,
        limit: _Limit = 50,
    ) -> Response:
        """Requests that arrived in [start, end): the worst first, or as they came."""
        with context.store.read() as cursor:
            chosen = choose(cursor, Asked(engine=engine, start_ns=start_ns, end_ns=end_ns))
            rows = list_requests(cursor, chosen, order, limit)
        return reply(Requests(rows, context.answers.device(engine)))

    @router.get("/v1/requests/{name:path}")
    def request(name: str, engine: str | None = None, start_ns: Moment = None, end_ns: Moment = None) -> Response:
        """Where the time of one request went; `name` is its number, the engine's own text for it, or `epoch:rank:number`.

        Of several with this name, which engines that started anew have, one that arrived in [start, end) is meant.
        """
        return reply(context.answers.why(name, engine, span_of("window", start_ns, end_ns)))

    @router.get("/v1/series")
    def series(
        bucket_ms: _BucketMs = 1_000, start_ns: int | None = None, end_ns: int | None = None, engine: str | None = None
    ) -> Response:
        """Counts and quantiles of TTFT by bucket of arrival."""
        with context.store.read() as cursor:
            chosen = choose(cursor, Asked(engine=engine, start_ns=start_ns, end_ns=end_ns))
            rows = request_series(cursor, chosen, bucket_ms * _NS_PER_MS)
        return reply(Series(bucket_ms, rows, context.answers.device(engine)))

    @router.get("/v1/blocks/{name}")
    def block(name: str, engine: str | None = None, at_ns: int | None = None) -> Response:
        """The life of a block, named by its hash in hexadecimal, or where its copies were at a moment."""
        return reply(context.answers.block(name, engine, at_ns))

    return router
