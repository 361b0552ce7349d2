"""The collector as an ASGI application: puts the parts together, owns none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from anyio import CapacityLimiter
from fastapi import FastAPI
from kvtrail_schema.clock import Clock

from kvtrail_collector.access import HostCheck
from kvtrail_collector.alerts.alerter import Alerter
from kvtrail_collector.answers import Answers
from kvtrail_collector.context import Context
from kvtrail_collector.metrics import Metrics
from kvtrail_collector.names import load_names
from kvtrail_collector.replies import install_error_replies
from kvtrail_collector.routes import (
    alert_routes,
    analysis_routes,
    event_routes,
    export_routes,
    gate_routes,
    health_routes,
    loss_routes,
    rebuild_routes,
    recorder_routes,
    request_routes,
    series_routes,
    sql_routes,
    tenant_routes,
    tier_routes,
    verdict_routes,
)
from kvtrail_collector.security import make_guard
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_monitor import KafkaMonitor
from kvtrail_collector.store import Store

_DECODING_THREADS: Final = 4
_ROUTES: Final = (
    *(event_routes, loss_routes, health_routes, request_routes, analysis_routes, verdict_routes, sql_routes),
    *(series_routes, tier_routes, tenant_routes, recorder_routes, rebuild_routes, export_routes, alert_routes, gate_routes),
)


def create_app(
    settings: Settings,
    store: Store,
    clock: Clock,
    sources: Mapping[str, str] | None = None,
    kafka: KafkaMonitor | None = None,
    *,
    alerter: Alerter,
) -> FastAPI:
    """Make the application. Starts nothing; the store stays the caller's, to be closed after the server has ended.

    Args:
        settings: what it may do; the address in them decides whether it may stand open.
        store: where events go.
        clock: wall time decides what is fresh, monotonic time is measured.
        sources: where each setting came from, for `/readyz`.
        kafka: what the source says that reads from Kafka; None where there is none.
        alerter: what watches the store; the caller starts and ends it.

    Raises:
        BindRefused: the address needs tokens and TLS that are not there.
        SettingsInvalid: a token, or the map of names, cannot be used.
    """
    context = Context(
        settings=settings,
        sources=sources or {},
        store=store,
        clock=clock,
        guard=make_guard(settings),
        metrics=Metrics(store, clock, kafka),
        answers=Answers(store),
        uploads=asyncio.Semaphore(settings.uploads),
        decoders=CapacityLimiter(_DECODING_THREADS),
        kafka=kafka,
        alerter=alerter,
        names=load_names(settings.names_file),
    )
    app = FastAPI(title="kvtrail collector", openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(HostCheck, guard=context.guard)
    install_error_replies(app)
    for routes in _ROUTES:
        app.include_router(routes(context))
    return app
