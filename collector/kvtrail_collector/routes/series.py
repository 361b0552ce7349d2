"""`GET /v1/engines`, `/v1/latency`, `/v1/spikes`, `/v1/pressure`: what there is, how fast, when not, and what holds it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.questions.engines import engines_known
from kvtrail_collector.questions.latency import Objective, latency
from kvtrail_collector.questions.pressure import pressure
from kvtrail_collector.questions.scope import choose
from kvtrail_collector.questions.spikes import spikes
from kvtrail_collector.replies import reply
from kvtrail_collector.routes.asked import AskedScope, Points
from kvtrail_collector.security import Scope as Access

_Ms = Annotated[float, Query(gt=0, le=3_600_000)]


def series_routes(context: Context) -> APIRouter:
    """Questions of the page *Now*. All run on worker threads."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Access.READ))])

    @router.get("/v1/engines")
    def engines() -> Response:
        """Engines with their ranks and times, tenants and models with the operator's names."""
        devices = context.answers.devices()
        with context.store.read() as cursor:
            return reply(engines_known(cursor, context.names, devices))

    @router.get("/v1/latency")
    def latency_over_time(scope: AskedScope, ttft_ms: _Ms = 500.0, tpot_ms: _Ms = 100.0, points: Points = 150) -> Response:
        """TTFT and TPOT by bucket of arrival and in all, and the share of requests within an objective."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            return reply(latency(cursor, choose(cursor, scope), Objective(ttft_ms, tpot_ms), points, device))

    @router.get("/v1/spikes")
    def slow_stretches(scope: AskedScope) -> Response:
        """Stretches of time that were slow, the latest first; of an engine and rank, whatever tenant and model."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            return reply(spikes(cursor, scope, device))

    @router.get("/v1/pressure")
    def held_back(scope: AskedScope) -> Response:
        """Degrade actions that are asked for or in force, and layers that push back, at the end of the window."""
        device = context.answers.device(scope.engine)
        with context.store.read() as cursor:
            return reply(pressure(cursor, choose(cursor, scope), device))

    return router
