"""`POST /v1/rebuild`: everything that follows from events, computed again."""

from fastapi import APIRouter, Depends, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.rebuild import rebuild
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope


def rebuild_routes(context: Context) -> APIRouter:
    """What changes derived rows, never events."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.CONTROL))])

    @router.post("/v1/rebuild")
    def run() -> Response:
        """Compute the projections again. Runs on a worker thread, and on the writer's for as long as it takes."""
        return reply(rebuild(context.store, context.clock, context.answers.device))

    return router
