"""`GET /v1/loss`: the balance of every stream."""

from fastapi import APIRouter, Depends, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.loss import loss_of
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope


def loss_routes(context: Context) -> APIRouter:
    """What is produced, stored, dropped, on its way, and unaccounted for."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])

    @router.get("/v1/loss")
    def loss() -> Response:
        """The balance as of the last commit. Runs on a worker thread."""
        accounts = context.store.accounts().values()
        return reply(loss_of(accounts, context.clock.wall_ns(), context.answers.device()))

    return router
