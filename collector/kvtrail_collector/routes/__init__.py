"""The HTTP API: one file a subject, each a function from the context to its router."""

from kvtrail_collector.routes.alerts import alert_routes
from kvtrail_collector.routes.analysis import analysis_routes
from kvtrail_collector.routes.events import event_routes
from kvtrail_collector.routes.export import export_routes
from kvtrail_collector.routes.gates import gate_routes
from kvtrail_collector.routes.health import health_routes
from kvtrail_collector.routes.loss import loss_routes
from kvtrail_collector.routes.rebuild import rebuild_routes
from kvtrail_collector.routes.recorder import recorder_routes
from kvtrail_collector.routes.requests import request_routes
from kvtrail_collector.routes.series import series_routes
from kvtrail_collector.routes.sql import sql_routes
from kvtrail_collector.routes.tenants import tenant_routes
from kvtrail_collector.routes.tiers import tier_routes
from kvtrail_collector.routes.verdicts import verdict_routes

__all__ = [
    "alert_routes",
    "analysis_routes",
    "event_routes",
    "export_routes",
    "gate_routes",
    "health_routes",
    "loss_routes",
    "rebuild_routes",
    "recorder_routes",
    "request_routes",
    "series_routes",
    "sql_routes",
    "tenant_routes",
    "tier_routes",
    "verdict_routes",
]
