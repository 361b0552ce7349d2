"""`GET /healthz`, `/readyz`, `/metrics`: is it there, can it work, what has it done."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.doctor import examine
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope


def health_routes(context: Context) -> APIRouter:
    """What orchestrators and Prometheus ask. `/healthz` tells nothing, so it needs no token."""
    router = APIRouter()
    reading = [Depends(require(context.guard, Scope.READ))]

    @router.get("/healthz")
    async def healthz() -> Response:
        """The process answers."""
        return reply({"ok": True})

    @router.get("/readyz", dependencies=reading)
    def readyz() -> Response:
        """Whether it can take and answer; the settings in force and where each came from. Runs on a worker thread."""
        diagnosis = examine(context)
        return reply(diagnosis, HTTPStatus.OK if diagnosis.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    @router.get("/metrics", dependencies=reading)
    def metrics(accept: Annotated[str, Header()] = "") -> Response:
        """All metrics, as OpenMetrics where that is asked for, else in Prometheus' text form. Runs on a worker thread."""
        text = context.metrics.text(accept)
        return Response(text.body, media_type=text.media_type)

    return router
