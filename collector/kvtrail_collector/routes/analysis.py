"""`GET /v1/attribution` and `/v1/verdicts`: what made the slow requests slow."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.answers import AttributionQuestion, span_of
from kvtrail_collector.attribution_shapes import Verdict, Window
from kvtrail_collector.context import Context
from kvtrail_collector.coverage import Missing, coverage_of, missing_kinds
from kvtrail_collector.loss import loss_of
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope

_Seed = Annotated[int, Query(ge=0, lt=2**32)]


class Verdicts(msgspec.Struct, frozen=True):
    """What is wrong, how much of what happened was seen, and what was not seen at all."""

    coverage: float
    window: Window | None
    verdicts: tuple[Verdict, ...]
    missing: tuple[Missing, ...]
    device: str | None = None
    schema: int = 1


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
        engine: str | None = None,
        seed: _Seed = 0,
    ) -> Response:
        """The excess of the window's tail by component and tier; a window or reference that is not given is searched for."""
        window = span_of("window", start_ns, end_ns)
        reference = span_of("reference", reference_start_ns, reference_end_ns)
        return reply(context.answers.attribution(AttributionQuestion(window, reference, engine, seed)))

    @router.get("/v1/verdicts")
    def verdicts(engine: str | None = None, seed: _Seed = 0) -> Response:
        """Every verdict, and the coverage that it stands on."""
        found = context.answers.attribution(AttributionQuestion(engine=engine, seed=seed))
        loss = loss_of(context.store.accounts().values(), context.clock.wall_ns())
        missing = missing_kinds(context.answers.kinds())
        return reply(Verdicts(coverage_of(loss), found.window, found.verdicts, missing, context.answers.device()))

    return router
