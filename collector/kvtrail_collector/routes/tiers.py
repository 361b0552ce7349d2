"""`GET /v1/tiers`: how full tiers are, what waits at them, what moves between them, and what getting KV back costs."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.questions.scope import choose
from kvtrail_collector.questions.tier_levels import tier_levels
from kvtrail_collector.questions.tier_moves import Tiers, moves, recompute_cost, restore_cost
from kvtrail_collector.replies import reply
from kvtrail_collector.routes.asked import AskedScope, Points
from kvtrail_collector.security import Scope as Access


def tier_routes(context: Context) -> APIRouter:
    """The question of the page *Tiers*; runs on a worker thread."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Access.READ))])

    @router.get("/v1/tiers")
    def tiers(scope: AskedScope, points: Points = 150) -> Response:
        """Levels over time and now, transfers by way, restore against recompute."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            chosen = choose(cursor, scope)
            levels, moved = tier_levels(cursor, chosen, points), moves(cursor, chosen)
            restore, recompute = restore_cost(cursor, chosen), recompute_cost(cursor, chosen)
        return reply(Tiers(levels, moved, restore, recompute, device))

    return router
