"""A batch that vanishes on the way, acknowledged by nobody who stored it, is seen and named."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from kvtrail_schema.batch import peek_header

from tests.e2e.parts import KVTRAIL, answer_of, collector, engine, only_stream, wait_for

STOLEN = 2


class Thief(ThreadingHTTPServer):
    """Passes batches on to a collector, but keeps one with rows for itself and says that it was stored."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.target = target
        self.lock = threading.Lock()
        self.seen = 0  # guarded by lock
        self.stolen: tuple[int, int] | None = None  # guarded by lock

    def steals(self, body: bytes) -> bool:
        """Whether this is the batch to keep."""
        header = peek_header(body)
        with self.lock:
            self.seen += header.count > 0
            if header.count and self.seen == STOLEN and self.stolen is None:
                self.stolen = (header.first_seq, header.last_seq)
                return True
        return False


class Passing(BaseHTTPRequestHandler):
    """One request, passed on or kept."""

    server: Thief

    def do_POST(self) -> None:
        """Answer as the collector does, or as it would."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 200
        if not self.server.steals(body):
            headers = {"content-type": self.headers["content-type"]}
            status = httpx.post(self.server.target + self.path, content=body, headers=headers, timeout=30).status_code
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def thief_before(target: str) -> Iterator[Thief]:
    """A thief on the way to a collector."""
    server = Thief(target)
    thread = threading.Thread(target=server.serve_forever, name="thief")
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.timeout(120)
def test_a_stolen_batch_is_named(tmp_path: Path, free_port: int) -> None:
    """The balance shows exactly the stolen seqs as unaccounted, and `kvtrail loss` ends with 1."""
    with (
        collector(tmp_path / "events.duckdb", free_port) as running,
        thief_before(running.url) as thief,
        engine(f"http://127.0.0.1:{thief.server_port}", tmp_path / "rings", "--duration", "8", "--rate", "15") as process,
    ):
        answer_of(process, 60)
        wait_for(lambda: not only_stream(running.get("/v1/loss"))["in_flight"], 30, "end of what is in flight")
        stream = only_stream(running.get("/v1/loss"))
        status = loss_status(running.url)

    assert thief.stolen is not None, f"{thief.seen} batches passed"
    first, last = thief.stolen
    assert [[first, last]] == stream["gaps"]
    assert last - first + 1 == stream["unaccounted"]
    assert status == 1


def loss_status(url: str) -> int:
    """How `kvtrail loss` ends."""
    return subprocess.run([*KVTRAIL, "loss", "--url", url, "--json"], capture_output=True, check=False).returncode
