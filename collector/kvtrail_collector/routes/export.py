"""`GET /v1/export/perfetto` and `/v1/export/parquet`: a stretch of time as a file of another tool's."""

from __future__ import annotations

import duckdb
from fastapi import APIRouter, Depends, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.export.parquet import parquet_file
from kvtrail_collector.export.shapes import nothing_there
from kvtrail_collector.export.timeline import timeline
from kvtrail_collector.questions.scope import LATEST_NS, Chosen, Scope, choose
from kvtrail_collector.routes.asked import AskedScope
from kvtrail_collector.security import Scope as Access

_LAST: str = "SELECT max(t_ns) FROM events WHERE stream_id IN (SELECT unnest($streams::INTEGER[]))"


def export_routes(context: Context) -> APIRouter:
    """Files; they are made on worker threads, and bounded."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Access.READ))])

    @router.get("/v1/export/perfetto")
    def perfetto(scope: AskedScope) -> Response:
        """Requests, steps, transfers and levels as a Perfetto trace."""
        try:
            from kvtrail_collector.export.perfetto_trace import perfetto_trace  # noqa: PLC0415 - an extra of its own
        except ModuleNotFoundError as error:
            what = f"the collector has no {error.name}"
            raise QuestionInvalid(what, where="export", do="pip install 'kvtrail[perfetto]' beside the collector") from error
        with context.store.read() as cursor:
            found = timeline(cursor, _closed(cursor, scope))
        if not any(one.slices or one.samples for one in found):
            raise nothing_there()
        return Response(perfetto_trace(found), media_type="application/octet-stream")

    @router.get("/v1/export/parquet")
    def parquet(scope: AskedScope) -> Response:
        """Events as a Parquet file."""
        with context.store.read() as cursor:
            chosen = choose(cursor, scope)
            chosen = chosen._replace(streams=chosen.of_all_time)
            return Response(parquet_file(cursor, chosen), media_type="application/vnd.apache.parquet")

    return router


def _closed(cursor: duckdb.DuckDBPyConnection, scope: Scope) -> Chosen:
    """A scope that ends where events do, so that what is open ends there, too."""
    chosen = choose(cursor, scope)
    if chosen.end_ns != LATEST_NS:
        return chosen
    row = cursor.execute(_LAST, {"streams": chosen.streams}).fetchone()
    return chosen if row is None or row[0] is None else chosen._replace(end_ns=row[0] + 1)
