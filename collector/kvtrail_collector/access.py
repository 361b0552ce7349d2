"""Puts the guard before the routes: the Host header on every call, a token for each scope."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from kvtrail_collector.errors import AccessRefused
from kvtrail_collector.replies import error_reply
from kvtrail_collector.security import Access, Guard, Scope

_STATUS_OF: Final = {
    Access.TOKEN_MISSING: HTTPStatus.UNAUTHORIZED,
    Access.TOKEN_WRONG: HTTPStatus.FORBIDDEN,
    Access.NOT_OFFERED: HTTPStatus.FORBIDDEN,
}


def require(guard: Guard, scope: Scope) -> Callable[[Request], Awaitable[None]]:
    """A dependency that lets a call through only with the token of a scope. Does not block."""

    async def check(request: Request) -> None:
        """Let a call through, or raise."""
        access = guard.access(scope, request.headers.get("authorization"))
        if access is not Access.GRANTED:
            do = f"send `Authorization: Bearer …` with the token for {scope.value}"
            raise AccessRefused(f"no access to {scope.value}", where=request.url.path, do=do, status=_STATUS_OF[access])

    return check


class HostCheck:
    """ASGI middleware: answers only calls that name us, so that a web page cannot reach us under its own name."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a call on, or answer it here."""
        if scope["type"] == "http" and not self._guard.knows_host(_header(scope, b"host")):
            error = AccessRefused(
                "the Host header does not name this collector",
                where=str(scope["path"]),
                do="call it by its address, or add the name to allowed_hosts",
                status=HTTPStatus.MISDIRECTED_REQUEST,
            )
            await error_reply(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _header(scope: AsgiScope, name: bytes) -> str | None:
    """One header of a call, if it is there exactly once."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else None
