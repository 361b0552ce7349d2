"""Takes LMCache's cache events by HTTP: a server that answers `POST /events` as its coordinator does, and records what comes.

LMCache sends to one coordinator. Name this server where there is none (`--coordinator-url`); else read the topic.
"""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any, Final

import msgspec

from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.errors import ForeignInvalid, SettingsInvalid
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_agent.importers.records import json_of

PATH: Final = "/events"
MOST_BYTES: Final = 64 << 20
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.2


class LmcacheReceiver:
    """Decodes under a lock, since senders come on several threads."""

    def __init__(self, decoder: LmcacheBatches, rows: LiveRows) -> None:
        self._lock = threading.Lock()
        self._decoder = decoder  # guarded by _lock
        self._rows = rows  # guarded by _lock

    def take(self, body: bytes) -> bytes:
        """One request; the answer of a coordinator.

        Raises:
            ForeignInvalid: the body is no JSON.
        """
        value = json_of(body)
        with self._lock:
            decoded = self._decoder.decode(value)
            self._rows.write(decoded)
        again = decoded.remarks["batches that came twice"]
        return msgspec.json.encode({"applied": len(decoded.parts), "duplicates": again, "stale": 0})

    def close(self) -> None:
        """End the recorders."""
        with self._lock:
            self._rows.close()


class LmcacheServer:
    """Listens on an address from its making on, answers from `run` on. A thread a sender, `kvtrail-lmcache-…`."""

    def __init__(self, host: str, port: int, receiver: LmcacheReceiver) -> None:
        self._receiver = receiver
        try:
            self._server = _Server((host, port), receiver.take)
        except OSError as error:
            raise SettingsInvalid(f"{host}:{port}: {error.strerror}: choose another address") from error

    @property
    def url(self) -> str:
        """Where it listens, for `--coordinator-url`."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def run(self, stop: threading.Event) -> None:
        """Answer until told to stop; then end the recorders."""
        thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="kvtrail-lmcache-http", daemon=True)
        thread.start()
        try:
            stop.wait()
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
            self._receiver.close()


class _Server(ThreadingMixIn, HTTPServer):
    """One path, one verb."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], take: Callable[[bytes], bytes]) -> None:
        self.take = take
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that went away in the middle is no news."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one sender."""

    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S
    server: _Server

    def do_POST(self) -> None:
        """`POST /events`."""
        size = self.headers.get("content-length", "")
        if self.path.partition("?")[0] != PATH:
            self._answer(HTTPStatus.NOT_FOUND, b"{}")
        elif not (size.isascii() and size.isdigit() and len(size) <= 9):  # noqa: PLR2004 - digits of the largest body
            self._answer(HTTPStatus.LENGTH_REQUIRED, b"{}")
        elif int(size) > MOST_BYTES:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"{}")
        else:
            self._take(self.rfile.read(int(size)))

    def do_GET(self) -> None:
        """`GET /healthz`, which LMCache may ask of its coordinator."""
        is_health = self.path.partition("?")[0] == "/healthz"
        self._answer(HTTPStatus.OK if is_health else HTTPStatus.NOT_FOUND, b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the standard library gives it
        """Nothing is written for each request."""

    def _take(self, body: bytes) -> None:
        """One body."""
        try:
            self._answer(HTTPStatus.OK, self.server.take(body))
        except ForeignInvalid:
            self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, b"{}")

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        """An answer in JSON; a refused one ends the connection, since its body was not read."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status >= HTTPStatus.BAD_REQUEST:
            self.send_header("connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)
