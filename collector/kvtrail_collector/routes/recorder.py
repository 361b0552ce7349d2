"""`GET /v1/recorder` and `/v1/event`: how the recorder itself does, and one event in full."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.attribution_shapes import EventRef
from kvtrail_collector.context import Context
from kvtrail_collector.errors import NotFound
from kvtrail_collector.questions.one_event import one_event
from kvtrail_collector.questions.recorder import recorder
from kvtrail_collector.questions.scope import choose
from kvtrail_collector.replies import reply
from kvtrail_collector.routes.asked import AskedScope, Points
from kvtrail_collector.security import Scope as Access

_U64 = Annotated[int, Query(ge=0, lt=2**64)]


def recorder_routes(context: Context) -> APIRouter:
    """Questions about the record itself; they run on worker threads."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Access.READ))])

    @router.get("/v1/recorder")
    def recorders(scope: AskedScope, points: Points = 150) -> Response:
        """Events a second, heartbeats, delays of the streams of a scope."""
        device = context.answers.device(scope.engine)
        now_ns = context.clock.wall_ns()
        with context.store.read() as cursor:
            return reply(recorder(cursor, choose(cursor, scope), points, now_ns, device))

    @router.get("/v1/event")
    def event(engine: str, epoch: _U64, rank: Annotated[int, Query(ge=0, lt=2**16)], seq: _U64) -> Response:
        """One event: its fields, its cause, and what it caused."""
        with context.store.read() as cursor:
            found = one_event(cursor, EventRef(engine, epoch, rank, seq))
        if found is None:
            what = f"event {seq} of {engine}, epoch {epoch}, rank {rank} is not stored"
            raise NotFound(what, where="events", do="ask /v1/loss whether it was dropped")
        return reply(found)

    return router
