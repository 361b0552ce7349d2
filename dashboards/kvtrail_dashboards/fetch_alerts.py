"""The page of alerts asks, and wishes: what it shows is never older than a rerun, since people act on it."""

import os

from kvtrail_dashboards.alert_answers import Alerts
from kvtrail_dashboards.client import CollectorClient
from kvtrail_dashboards.errors import DashboardError
from kvtrail_dashboards.sections.notice import show_error
from kvtrail_dashboards.settings import load_settings


def fetch_alerts() -> Alerts:
    """Rules, actions and what happened. Blocks the page's thread for one short question."""
    with CollectorClient(load_settings(os.environ)) as client:
        return client.alerts()


def release_action(engine: str, action: str) -> None:
    """A person ends an action; what goes wrong is shown on the page."""
    try:
        with CollectorClient(load_settings(os.environ)) as client:
            client.release(engine, action)
    except DashboardError as error:
        show_error(error)
