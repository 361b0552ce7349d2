"""What a verb started ends with it, however it is told to end."""

import signal
import socket
import subprocess
import sys
import time

import pytest


def listens(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(port: int, *, listening: bool) -> bool:
    """Wait a bounded time for somebody to listen, or to stop."""
    until = time.monotonic() + 40
    while listens(port) is not listening and time.monotonic() < until:
        time.sleep(0.1)
    return listens(port) is listening


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_pages_end_with_their_verb(free_port: int, number: signal.Signals) -> None:
    """A dashboard that is told to end leaves no page behind, also where a shell made it ignore SIGINT at its start."""
    command = [sys.executable, "-m", "kvtrail_cli.main", "dashboard", "--port", str(free_port), "--url", "http://127.0.0.1:9"]
    ignoring = f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv({command[0]!r}, {command!r})"
    process = subprocess.Popen([sys.executable, "-c", ignoring], stderr=subprocess.DEVNULL)
    try:
        assert wait_until(free_port, listening=True)
        process.send_signal(number)

        assert process.wait(20) == 0
        assert wait_until(free_port, listening=False)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
