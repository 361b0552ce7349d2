"""A real HTTP server that answers as LMCache 0.5 documents for its internal API; it is not LMCache."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Bypasses:
    """Which backends there are, and which are bypassed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.bypassed: list[str] = []  # guarded by the lock
        self.lock = threading.Lock()
        self.is_ready = True
        """Whether its engine is configured."""
        self.url = ""

    def change(self, path: str, name: str) -> tuple[int, dict[str, Any]]:
        """Status and body of an answer."""
        if not self.is_ready:
            return 503, {"error": "Bypass API is unavailable", "message": "LMCache engine not configured."}
        if name not in self.names:
            message = f"Backend '{name}' not found. Available: {list(self.names)}"
            return 400, {"error": "Unknown backend", "message": message}
        with self.lock:
            if path == "/bypass/add" and name not in self.bypassed:
                self.bypassed.append(name)
            if path == "/bypass/remove" and name in self.bypassed:
                self.bypassed.remove(name)
            return 200, {"status": "success", "backend_name": name, "bypassed_backends": self.bypassed}


@contextmanager
def lmcache_server(*names: str) -> Iterator[Bypasses]:
    """Such a server with these backends."""
    state = Bypasses(names)

    class Handler(BaseHTTPRequestHandler):
        """One call."""

        def do_PUT(self) -> None:
            """Switch."""
            split = urlsplit(self.path)
            status, answer = state.change(split.path, parse_qs(split.query).get("backend_name", [""])[0])
            body = json.dumps(answer, indent=2).encode()
            self.send_response(status if split.path in {"/bypass/add", "/bypass/remove"} else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class' name
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
