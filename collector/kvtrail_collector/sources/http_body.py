"""The body of a `POST`, read while it streams in: never more than the bound is held, and never longer than the time."""

import asyncio
from typing import Final

from fastapi import Request
from kvtrail_schema.batch import CONTENT_TYPE

from kvtrail_collector.errors import BodyTimeout, BodyTooLarge, MediaUnsupported

# A page in a browser can send neither of these to a foreign address without asking first, and we never say yes.
_MEDIA: Final = frozenset({CONTENT_TYPE, "application/octet-stream"})


def check_media(request: Request) -> None:
    """Refuse a body that does not say that it is a batch. Reads headers alone.

    Raises:
        MediaUnsupported: another content type, or a content encoding: frames are compressed already.
    """
    kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in _MEDIA:
        raise MediaUnsupported(f"content type {kind!r}", where=request.url.path, do=f"send it as {CONTENT_TYPE}")
    if encoding != "identity":
        raise MediaUnsupported(f"content encoding {encoding!r}", where=request.url.path, do="send frames as they are")


async def read_body(request: Request, *, limit_bytes: int, timeout_s: float) -> bytes:
    """The whole body. Runs on the event loop; holds `limit_bytes` and one chunk at most.

    Raises:
        BodyTooLarge: it says, or shows, that it has more bytes than the bound; the rest was not read.
        BodyTimeout: it was not there in time.
    """
    _check_announced(request, limit_bytes)
    try:
        async with asyncio.timeout(timeout_s):
            return await _gather(request, limit_bytes)
    except TimeoutError as error:
        do = "send smaller batches, or raise body_timeout_s"
        raise BodyTimeout(f"the body was not there after {timeout_s} s", where=request.url.path, do=do) from error


async def _gather(request: Request, limit_bytes: int) -> bytes:
    """The chunks of a body, up to the bound."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise _too_large(request, f"more than {limit_bytes} bytes")
    return bytes(body)


def _check_announced(request: Request, limit_bytes: int) -> None:
    """Refuse by the announced length, before anything is read."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced) > limit_bytes:
        raise _too_large(request, f"{announced} bytes, over the limit of {limit_bytes}")


def _too_large(request: Request, what: str) -> BodyTooLarge:
    """The refusal of a body by its size."""
    return BodyTooLarge(f"the body has {what}", where=request.url.path, do="send smaller batches, or raise body_bytes")
