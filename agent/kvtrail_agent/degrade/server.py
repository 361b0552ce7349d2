"""A server for one path and one verb, from the standard library: an engine's process loads no web framework for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any, Final, NamedTuple

from kvtrail_agent.errors import SettingsInvalid

PATH: Final = "/v1/degrade"
MOST_BYTES: Final = 16_384
_PATIENCE_S: Final = 2.0
_POLL_S: Final = 0.2
_AT_ONCE: Final = 8


class Answer(NamedTuple):
    """What the sender hears."""

    status: HTTPStatus
    text: str


Receive = Callable[[dict[str, str], bytes], Answer]


class Endpoint:
    """Listens from its making on, answers from `start` on. A few calls at a time; one that is slow holds nothing up."""

    def __init__(self, host: str, port: int, receive: Receive) -> None:
        try:
            self._server = _Server((host.strip("[]"), port), receive)
        except OSError as error:
            message = f"{host}:{port}: {error.strerror}: choose another address for orders"
            raise SettingsInvalid(message) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="kvtrail-degrade", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}{PATH}"

    def start(self) -> None:
        """Answer calls."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more; blocks for the call that is under way."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingMixIn, HTTPServer):
    """A thread a call; calls beyond the bound are cut off."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], receive: Receive) -> None:
        self.receive = receive
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A call, on a thread of its own, where there is a place."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The life of that thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that breaks off is none of the engine's business: nothing is printed into its output."""


class _Handler(BaseHTTPRequestHandler):
    """One call."""

    timeout = _PATIENCE_S
    server_version = "kvtrail"
    sys_version = ""

    def do_POST(self) -> None:
        """Take one webhook in."""
        length = self.headers.get("content-length", "")
        size = int(length) if length.isascii() and length.isdigit() and len(length) < len(str(MOST_BYTES)) + 1 else -1
        if self.path != PATH:
            self._answer(Answer(HTTPStatus.NOT_FOUND, f"orders go to {PATH}"))
        elif not 0 <= size <= MOST_BYTES:
            self._answer(Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES} bytes, with their length"))
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            assert isinstance(self.server, _Server), self.server
            self._answer(self.server.receive(headers, self.rfile.read(size)))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class' name
        """Print nothing into the engine's output."""

    def _answer(self, answer: Answer) -> None:
        """Say what became of it, and end the connection."""
        text = answer.text.encode()
        self.send_response(answer.status)
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.send_header("content-length", str(len(text)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(text)
