"""`POST /v1/events`: one batch, acknowledged after its commit."""

from __future__ import annotations

import asyncio
from functools import partial

import anyio.to_thread
import msgspec
from fastapi import APIRouter, Depends, Request, Response
from kvtrail_schema.batch import Limits

from kvtrail_collector.access import require
from kvtrail_collector.context import Context
from kvtrail_collector.errors import BatchInvalid, Busy, StoreError
from kvtrail_collector.replies import reply, status_of
from kvtrail_collector.security import Scope
from kvtrail_collector.sources.http_body import check_media, read_body
from kvtrail_collector.steps.decode import decode, engine_of
from kvtrail_collector.store import Quarantined, Receipt


class EventsReply(msgspec.Struct, frozen=True):
    """What became of a batch: rows that were new, and rows that were stored already."""

    stored: int
    duplicate: int


def event_routes(context: Context) -> APIRouter:
    """The way in for events."""
    router = APIRouter(dependencies=[Depends(require(context.guard, Scope.WRITE))])
    limits = Limits(frame_bytes=context.settings.body_bytes, body_bytes=context.settings.decoded_bytes)

    @router.post("/v1/events")
    async def receive(request: Request) -> Response:
        """Store one batch. Answers 200 after the commit: what is acknowledged is on disk, once."""
        check_media(request)
        if context.uploads.locked():
            raise Busy("as many batches are coming in as may", where=request.url.path, do="wait and send again")
        async with context.uploads:
            receipt = await _ingest(context, limits, request)
        return reply(EventsReply(stored=receipt.stored, duplicate=receipt.duplicate))

    return router


async def _ingest(context: Context, limits: Limits, request: Request) -> Receipt:
    """Read, decode, store; what cannot be read goes to quarantine. Runs on the event loop, waits on threads."""
    began_ns = context.clock.monotonic_ns()
    body = b""
    try:
        body = await read_body(request, limit_bytes=limits.frame_bytes, timeout_s=context.settings.body_timeout_s)
        reading = partial(decode, body, context.clock.wall_ns(), limits)
        incoming = await anyio.to_thread.run_sync(reading, limiter=context.decoders)
        receipt = await asyncio.wrap_future(context.store.submit(incoming))
    except BatchInvalid as error:
        await _quarantine(context, limits, body, error, _size_bytes(request, body))
        raise
    context.metrics.ingested(context.clock.monotonic_ns() - began_ns)
    return receipt


async def _quarantine(context: Context, limits: Limits, body: bytes, error: BatchInvalid, size_bytes: int) -> None:
    """Keep the evidence. A store that has no room for it, too, keeps the count."""
    context.metrics.quarantined(status_of(error))
    engine = await anyio.to_thread.run_sync(partial(engine_of, body, limits), limiter=context.decoders) if body else None
    item = Quarantined(context.clock.wall_ns(), error.trouble.what, engine, size_bytes, body)
    try:
        await asyncio.wrap_future(context.store.quarantine(item))
    except StoreError:
        return


def _size_bytes(request: Request, body: bytes) -> int:
    """How large a body is, or said to be."""
    announced = request.headers.get("content-length", "")
    return len(body) or (int(announced) if announced.isascii() and announced.isdigit() and len(announced) < 18 else 0)  # noqa: PLR2004
