"""`GET /v1/attribution`: what made the slow requests slow."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.answers import AttributionQuestion, apart, span_of
from kvtrail_collector.attribution_shapes import Measure
from kvtrail_collector.context import Context
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope

_Seed = Annotated[int, Query(ge=0, lt=2**32)]


def analysis_routes(context: Context) -> APIRouter:
    """Questions that are computed. All run on worker threads and may take seconds."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])

    @router.get("/v1/attribution")
    def attribution(
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        reference_start_ns: int | None = None,
        reference_end_ns: int | None = None,
        measure: Measure = Measure.TTFT,
        engine: str | None = None,
        seed: _Seed = 0,
    ) -> Response:
        """The excess of the window's tail by component and tier; a window or reference that is not given is searched for."""
        window = span_of("window", start_ns, end_ns)
        reference = span_of("reference", reference_start_ns, reference_end_ns)
        apart(window, reference)
        question = AttributionQuestion(window, reference, engine, seed, measure)
        return reply(context.answers.attribution(question))

    return router
