"""`GET /v1/gates`: whether one stored run may take the place of another."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.errors import QuestionInvalid
from kvtrail_collector.gate_store import gate_runs, parse_run
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope

_Run = Annotated[str, Query(min_length=1, max_length=512)]


def gate_routes(context: Context) -> APIRouter:
    """A question that takes seconds. Runs on a worker thread."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.READ))])
    detecting = load_thresholds(context.settings.thresholds_file)

    @router.get("/v1/gates")
    def gate(baseline: _Run, candidate: _Run, threshold: Annotated[list[str] | None, Query()] = None) -> Response:
        """Every condition, with its figures and its interval. Runs are ENGINE or ENGINE@EPOCH (hexadecimal, as it is shown,
        or decimal), thresholds NAME=VALUE.
        """
        before, after = parse_run(context.store, baseline), parse_run(context.store, candidate)
        return reply(gate_runs(before, after, context.clock.wall_ns(), thresholds_of(threshold or []), detecting))

    return router


def thresholds_of(texts: list[str]) -> dict[str, float]:
    """Thresholds as NAME=VALUE.

    Raises:
        QuestionInvalid: one is not.
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError as error:
            raise QuestionInvalid(f"{text!r} is no threshold", where="threshold", do="write NAME=VALUE") from error
    return found
