"""`kvtrail dashboard`: the pages, in front of a running collector."""

import socket
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from kvtrail_cli.client import DEFAULT_URL, CollectorClient
from kvtrail_cli.errors import CommandError, InputInvalid
from kvtrail_cli.options import TokenFile, Url
from kvtrail_cli.output import note

NAME = "dashboard"
DEFAULT_PORT = 4751
_HOST = "127.0.0.1"


def command(
    url: Url = DEFAULT_URL,
    token_file: TokenFile = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on, on loopback.")] = DEFAULT_PORT,
) -> None:
    """Serve the dashboard on loopback until Ctrl-C."""
    process = start(url, port, str(token_file) if token_file else None)
    if (problem := unanswered(url, token_file)) is not None:
        note(f"{problem}; until then the pages are empty")
    note(f"dashboard: http://127.0.0.1:{port}  (Ctrl-C ends it)")
    try:
        status = process.wait()
    except KeyboardInterrupt:
        status = stop(process)
    raise typer.Exit(status)


def unanswered(url: str, token_file: Path | None) -> str | None:
    """Why a collector does not answer; None where it does. Pages may be started before it: then they wait for it."""
    try:
        with CollectorClient(url, token_file) as collector:
            collector.get_raw("/v1/engines")
    except CommandError as error:
        return str(error)
    return None


def start(url: str, port: int, token_file: str | None) -> "subprocess.Popen[bytes]":
    """Start the pages in a process of their own.

    Raises:
        InputInvalid: somebody listens on the port.
    """
    _check_free(port)
    from kvtrail_dashboards.serve import command as streamlit_command  # noqa: PLC0415 - needs the extra

    return subprocess.Popen(streamlit_command(port, url, token_file), stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


def _check_free(port: int) -> None:
    """Say that a port is taken before the pages are loaded, which takes seconds and says it at length."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            message = f"--port {port}: {error.strerror}: choose another, or end what listens there"
            raise InputInvalid(message) from error


def stop(process: "subprocess.Popen[bytes]") -> int:
    """End a process that this one started, gently first. Its end on request is no failure."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 0
