"""A collector in a process of its own for as long as a demo lasts."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvtrail_cli.errors import CollectorUnreachable

_START_TIMEOUT_S = 60.0
_POLL_S = 0.05
_STOP_TIMEOUT_S = 15.0


@contextmanager
def running_collector(directory: Path, *flags: str) -> Iterator[str]:
    """Start a collector on a free port of loopback, storing into the directory; yields its address, ends it at the end.

    Raises:
        CollectorUnreachable: it did not come up; its log is named.
    """
    address_file, log = directory / "collector.address", directory / "collector.log"
    address_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "kvtrail_cli.main", "collector", "serve"]
    command += ["--store", str(directory / "events.duckdb"), "--port", "0", "--address-file", str(address_file)]
    command += flags
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield _address(process, address_file, log)
    finally:
        _stop(process)


def _address(process: "subprocess.Popen[bytes]", address_file: Path, log: Path) -> str:
    """Wait for the address that the collector writes once it can be called."""
    until = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        if address_file.exists():
            return address_file.read_text(encoding="utf-8")
        time.sleep(_POLL_S)
    message = f"the demo's collector did not start: see {log}"
    raise CollectorUnreachable(message)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the collector in order, or, where it does not end, at once."""
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
