"""Answers as JSON, and errors as answers: one shape for all, with the status that the caller can act on."""

from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from kvtrail_collector.errors import (
    AccessRefused,
    BatchInvalid,
    BodyTimeout,
    BodyTooLarge,
    Busy,
    CollectorError,
    MediaUnsupported,
    NotFound,
    QuestionInvalid,
    StoreClosed,
    StoreFull,
    StoreUnavailable,
    StoreUnusable,
    Trouble,
)

RETRY_AFTER_S: Final = 1
_JSON: Final = "application/json"

# The most specific class wins: subclasses stand before their bases.
_STATUS_OF: Final[tuple[tuple[type[CollectorError], HTTPStatus], ...]] = (
    (BodyTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (BatchInvalid, HTTPStatus.BAD_REQUEST),
    (MediaUnsupported, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (BodyTimeout, HTTPStatus.REQUEST_TIMEOUT),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreFull, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreClosed, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreUnusable, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (NotFound, HTTPStatus.NOT_FOUND),
    (QuestionInvalid, HTTPStatus.UNPROCESSABLE_ENTITY),
)


class ErrorReply(msgspec.Struct, frozen=True):
    """What a caller gets instead of an answer."""

    error: Trouble


def reply(answer: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """An answer as JSON."""
    return Response(msgspec.json.encode(answer), status_code=status, media_type=_JSON)


def error_reply(error: CollectorError) -> Response:
    """An error as JSON, with its status."""
    status = status_of(error)
    response = reply(ErrorReply(error.trouble), status)
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["retry-after"] = str(RETRY_AFTER_S)
    if status is HTTPStatus.UNAUTHORIZED:
        response.headers["www-authenticate"] = "Bearer"
    return response


def status_of(error: CollectorError) -> HTTPStatus:
    """The status that tells a caller what to do."""
    if isinstance(error, AccessRefused):
        return error.status
    return next((status for kind, status in _STATUS_OF if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def install_error_replies(app: FastAPI) -> None:
    """Make every error that leaves a route an answer of this shape."""
    app.add_exception_handler(CollectorError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_bad_question)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_any)


async def _on_ours(_request: Request, error: Exception) -> Response:
    """An error of ours."""
    assert isinstance(error, CollectorError), error
    return error_reply(error)


async def _on_bad_question(request: Request, error: Exception) -> Response:
    """A question with a parameter that is none."""
    assert isinstance(error, RequestValidationError), error
    what = "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors())
    trouble = Trouble(what, request.url.path, "mend the named parameter")
    return reply(ErrorReply(trouble), HTTPStatus.UNPROCESSABLE_ENTITY)


async def _on_http(request: Request, error: Exception) -> Response:
    """No such path, or not with this method."""
    assert isinstance(error, HTTPException), error
    trouble = Trouble(str(error.detail), request.url.path, "see the list of paths in the documentation")
    return reply(ErrorReply(trouble), HTTPStatus(error.status_code))


async def _on_any(request: Request, error: Exception) -> Response:
    """What nobody foresaw; the server's log has it in full, and the server closes the connection after it."""
    trouble = Trouble(type(error).__name__, request.url.path, "look into the collector's log and report it")
    response = reply(ErrorReply(trouble), HTTPStatus.INTERNAL_SERVER_ERROR)
    response.headers["connection"] = "close"
    return response
