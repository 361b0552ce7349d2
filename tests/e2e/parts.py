"""The real parts, each in a process of its own, as an operator starts them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import httpx

KVTRAIL = [sys.executable, "-m", "kvtrail_cli.main"]
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Collector:
    """A running collector."""

    process: Process
    url: str

    def get(self, path: str) -> dict[str, object]:
        """Ask it for an object."""
        answer: dict[str, object] = httpx.get(f"{self.url}{path}", timeout=60).raise_for_status().json()
        return answer

    def get_text(self, path: str) -> str:
        """Ask it for a page."""
        return httpx.get(f"{self.url}{path}", timeout=60).raise_for_status().text

    def get_status(self, path: str) -> int:
        """The status with which it answers."""
        return httpx.get(f"{self.url}{path}", timeout=60).status_code


@contextmanager
def collector(store: Path, port: int, *flags: str) -> Iterator[Collector]:
    """A collector on a port, storing into a file; ended in order unless the test ended it."""
    address = store.with_suffix(".address")
    address.unlink(missing_ok=True)
    command = [*KVTRAIL, "collector", "serve", "--store", str(store), "--port", str(port), "--address-file", str(address)]
    command += flags
    with store.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        wait_for(address.exists, 60, "the collector's address")
        yield Collector(process, address.read_text())
    finally:
        end(process)


@contextmanager
def engine(url: str, rings: Path, *flags: str) -> Iterator[Process]:
    """The reference engine under generated chats, its events sent to an address."""
    command = [*KVTRAIL, "engine", "run", "--json", "--transport", url, "--ring-dir", str(rings), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        end(process)
        if process.stdout is not None:
            process.stdout.close()


def answer_of(process: Process, timeout_s: float) -> dict[str, object]:
    """Wait for a command to end well; what it printed, as an object."""
    assert process.stdout is not None
    out, _ = process.communicate(timeout=timeout_s)

    assert process.returncode == 0
    answer: dict[str, object] = json.loads(out)
    return answer


def end(process: Process) -> None:
    """End a process that this test started, if it still runs."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def kill(pid: int) -> None:
    """Take a process away without a word."""
    os.kill(pid, signal.SIGKILL)


def wait_for(there: Callable[[], object], timeout_s: float, what: str) -> None:
    """Wait until something holds; fail with its name if it does not in time."""
    until = time.monotonic() + timeout_s
    while not there():
        assert time.monotonic() < until, f"no {what} after {timeout_s} s"
        time.sleep(0.1)


def only_stream(loss: dict[str, object]) -> dict[str, object]:
    """The one stream of a balance."""
    streams = loss["streams"]
    assert isinstance(streams, list)
    (stream,) = streams
    assert isinstance(stream, dict)
    return stream


def stored_seqs(store: Path) -> tuple[int, int]:
    """How many rows a closed store holds, and how many different seqs."""
    with duckdb.connect(str(store), read_only=True) as connection:
        row = connection.execute("SELECT count(*), count(DISTINCT (stream_id, seq)) FROM events").fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
