"""Servers and objects with the interfaces that TensorRT-LLM documents: what a poller and a listener meet."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.importers.decoded import Origin
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.testing import RecordingTransport, recorder_for_tests
from kvtrail_schema.clock import SystemClock


class Drained:
    """An engine whose buffers are drained by whoever asks; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, list[Any]] = {"/kv_cache_events": [], "/metrics": [], "/perf_metrics": []}  # guarded by _lock
        self.asked: list[tuple[str, str]] = []
        self.refuse_post = False
        self.status = 200

    def put(self, *records: Any, path: str = "/kv_cache_events") -> None:
        """Give records to whoever asks next."""
        with self._lock:
            self._held[path] += records

    def drain(self, path: str) -> list[Any]:
        """What there is."""
        with self._lock:
            found, self._held[path] = self._held[path], []
        return found


@contextmanager
def trtllm_server(engine: Drained) -> Iterator[str]:
    """`trtllm-serve` as far as a poller sees it, on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        """Answers a poller."""

        def do_GET(self) -> None:
            """Statistics, requests, and in some versions the events."""
            self._drain()

        def do_POST(self) -> None:
            """The events."""
            if engine.refuse_post:
                engine.asked.append(("POST", self.path))
                self._answer(405, b"{}")
            else:
                self._drain()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the standard library gives it
            """Nothing is written for each request."""

        def _drain(self) -> None:
            """The records of a path, as an array."""
            engine.asked.append((self.command, self.path))
            self._answer(engine.status, json.dumps(engine.drain(self.path)).encode() if engine.status == 200 else b"busy")

        def _answer(self, status: int, body: bytes) -> None:
            """One answer."""
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="test-trtllm", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Recorded:
    """Live rows into memory: a recorder for each origin, all into one transport."""

    def __init__(self, folder: Path) -> None:
        self.transport = RecordingTransport()
        self.origins: list[Origin] = []
        self._folder = folder
        self.rows = LiveRows(self._start, "test", (), SystemClock())

    def _start(self, origin: Origin) -> Recorder:
        """A real recorder on a small ring."""
        self.origins.append(origin)
        return recorder_for_tests(self.transport, self._folder / f"rings-{len(self.origins)}", engine=origin.engine or "engine")
