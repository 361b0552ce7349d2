"""`GET /v1/verdicts` and `/v1/prefetch`: everything that is wrong, and what prefetching gave and took."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.answers import AttributionQuestion, span_of
from kvtrail_collector.context import Context
from kvtrail_collector.detectors.scene import Bounds
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.diagnose_store import VerdictKeeper, VerdictQuestion
from kvtrail_collector.prefetch_account import prefetch_account
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope

_Seed = Annotated[int, Query(ge=0, lt=2**32)]


def verdict_routes(context: Context) -> APIRouter:
    """Questions that are computed. All run on worker threads and may take seconds."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])
    keeper = VerdictKeeper(context.store, load_thresholds(context.settings.thresholds_file))

    @router.get("/v1/verdicts")
    def verdicts(
        *, start_ns: int | None = None, end_ns: int | None = None, engine: str | None = None, seed: _Seed = 0
    ) -> Response:
        """Every verdict, most important first, the coverage that it stands on, and what was missing.

        Bounds are of the events that are judged, on the engine's monotonic clock; the spike is searched for in all of them.
        """
        bounds = _bounds(start_ns, end_ns, engine)
        found = context.answers.attribution(AttributionQuestion(engine=engine, seed=seed))
        question = VerdictQuestion(bounds, seed)
        return reply(keeper.answer(question, found, context.clock.wall_ns()))

    @router.get("/v1/prefetch")
    def prefetch(*, start_ns: int | None = None, end_ns: int | None = None, engine: str | None = None) -> Response:
        """What became of every prefetched block, by tier and tenant."""
        bounds = _bounds(start_ns, end_ns, engine)
        with context.store.read() as cursor:
            account = prefetch_account(cursor, bounds, context.answers.device(engine))
        return reply(account)

    return router


def _bounds(start_ns: int | None, end_ns: int | None, engine: str | None) -> Bounds:
    """Both bounds of time or neither, and an engine or all."""
    window = span_of("window", start_ns, end_ns)
    return Bounds(engine=engine) if window is None else Bounds(*window, engine)
