"""`GET /v1/sql`: one SELECT over the tables and views of the store."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope
from kvtrail_collector.sql import SqlDesk, SqlLimits

_Text = Annotated[str, Query(min_length=1, max_length=20_000)]
_Rows = Annotated[int, Query(ge=1, le=100_000)]
_Seconds = Annotated[float, Query(gt=0, le=120)]


def sql_routes(context: Context) -> APIRouter:
    """A question that people write themselves. Runs on a worker thread, for as long as its limit allows."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])
    desk = SqlDesk(context.store)

    @router.get("/v1/sql")
    def sql(query: _Text, rows: _Rows = 1_000, seconds: _Seconds = 30.0) -> Response:
        """The rows of one SELECT, at most so many, within so many seconds."""
        return reply(desk.answer(query, SqlLimits(rows, seconds)))

    return router
