"""How the dashboard is started: one command line, loopback only, no telemetry."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvtrail_dashboards.settings import COLLECTOR_URL, READ_TOKEN_FILE

HOST: Final = "127.0.0.1"
SCRIPT: Final = Path(__file__).parent / "script" / "main.py"


def command(port: int, collector_url: str, token_file: str | None = None) -> list[str]:
    """The command that serves the dashboard on a port of loopback. Starts nothing.

    It holds no secret: address and token file reach the process as the variables of `environment`, set by `env`, so that
    the list can be run as it is.
    """
    variables = [f"{name}={value}" for name, value in environment(collector_url, token_file).items()]
    return ["/usr/bin/env", *variables, sys.executable, "-m", "streamlit", "run", str(SCRIPT), *_flags(port)]


def environment(collector_url: str, token_file: str | None = None) -> Mapping[str, str]:
    """The variables that the dashboard reads. The file's path is told, never the token."""
    named = {READ_TOKEN_FILE: token_file} if token_file else {}
    return {COLLECTOR_URL: collector_url, **named}


def address(port: int) -> str:
    """Where people find it."""
    return f"http://{HOST}:{port}"


def _flags(port: int) -> list[str]:
    """Streamlit's settings: headless, silent about us, loopback only, no page of another origin, no developer's menu."""
    settings = {
        "server.headless": "true",
        "server.address": HOST,
        "server.port": str(port),
        "server.fileWatcherType": "none",
        "server.enableCORS": "true",
        "server.enableXsrfProtection": "true",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": HOST,
        "client.toolbarMode": "viewer",
        "client.showErrorDetails": "none",
        "client.showSidebarNavigation": "false",
    }
    return [word for name, value in settings.items() for word in (f"--{name}", value)]
