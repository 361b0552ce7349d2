"""`GET /v1/alerts`, and the two wishes of a person: `POST /v1/actions/request` and `POST /v1/actions/release`."""

from __future__ import annotations

from typing import Annotated, Final

import anyio.to_thread
import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from kvtrail_schema.degrade import parse_action
from kvtrail_schema.errors import OrderInvalid

from kvtrail_collector.access import require
from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.alerts.answer import alerts_now
from kvtrail_collector.alerts.shapes import ActionAnswer, ActionAsked
from kvtrail_collector.context import Context
from kvtrail_collector.errors import MediaUnsupported, QuestionInvalid
from kvtrail_collector.replies import reply
from kvtrail_collector.security import Scope

_MOST_BYTES: Final = 4_096
_MOST_SECONDS: Final = 3_600.0
_Most = Annotated[int, Query(ge=1, le=1_000)]


def alert_routes(context: Context) -> APIRouter:
    """Looking wants the token for reading, wishing the one for control."""
    router = APIRouter()
    alerter = context.alerter

    @router.get("/v1/alerts", dependencies=[Depends(require(context.guard, Scope.READ))])
    def alerts(audit: _Most = 200) -> Response:
        """Rules and their state, actions in force, and what happened. Runs on a worker thread."""
        device = context.answers.device()
        with context.store.read() as cursor:
            return reply(alerts_now(alerter, cursor, audit, device))

    @router.post("/v1/actions/request", dependencies=[Depends(require(context.guard, Scope.CONTROL))])
    async def request_action(request: Request) -> Response:
        """Ask an engine for an action, for a time."""
        asked = await _asked(request)
        changed = await anyio.to_thread.run_sync(_request, alerter, asked)
        return reply(ActionAnswer(asked.engine, asked.action, changed=changed, device=context.answers.device()))

    @router.post("/v1/actions/release", dependencies=[Depends(require(context.guard, Scope.CONTROL))])
    async def release_action(request: Request) -> Response:
        """End an action, whoever wanted it. The rule that wanted it wants nothing until its alert has ended."""
        asked = await _asked(request)
        changed = await anyio.to_thread.run_sync(alerter.release, asked.engine, asked.action)
        return reply(ActionAnswer(asked.engine, asked.action, changed=changed, device=context.answers.device()))

    return router


def _request(alerter: Alerter, asked: ActionAsked) -> bool:
    """A person wants an action; whether that changed anything.

    Raises:
        QuestionInvalid: it is none, or no target takes it.
        NotFound: nobody knows the engine.
    """
    try:
        return alerter.request(asked.engine, parse_action(asked.action), asked.seconds)
    except OrderInvalid as error:
        raise QuestionInvalid(str(error), where="action", do="see docs/alerts.md for actions") from error


async def _asked(request: Request) -> ActionAsked:
    """What is wished for. It must say that it is JSON, which no web page of somebody else can say unasked.

    Raises:
        MediaUnsupported, QuestionInvalid: it is no wish.
    """
    if request.headers.get("content-type", "").split(";", 1)[0].strip().lower() != "application/json":
        raise MediaUnsupported("a wish is JSON", where=request.url.path, do="send content-type: application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise QuestionInvalid("too long", where=request.url.path, do=f"send at most {_MOST_BYTES} bytes")
    try:
        asked = msgspec.json.decode(body, type=ActionAsked)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise QuestionInvalid(str(error), where=request.url.path, do="send engine, action and seconds") from error
    if not asked.engine or not 1 <= asked.seconds <= _MOST_SECONDS:
        do = f"name an engine, and 1 to {_MOST_SECONDS:g} seconds"
        raise QuestionInvalid("no engine, or no time", where=request.url.path, do=do)
    return asked
