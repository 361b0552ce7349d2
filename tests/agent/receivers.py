"""A real HTTP server that takes frames as a collector does, and answers as it is told to."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kvtrail_schema.batch import CONTENT_TYPE, decode_batch
from kvtrail_schema.errors import CodecError

EVENTS_PATH = "/v1/events"


class Receiver(ThreadingHTTPServer):
    """Keeps the frames that it acknowledged. `answers` are given first, one a request, before anything is kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.frames: list[bytes] = []  # guarded by lock
        self.answers: list[HTTPStatus] = []  # guarded by lock
        self.token = ""
        self.hold = threading.Event()  # requests wait for it
        self.hold.set()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up before its answer is what some tests are about; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # typeshed names socket types here

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def answer_to(self, handler: "_Handler", frame: bytes) -> HTTPStatus:
        """What to say to a request; a good frame is kept."""
        self.hold.wait(30)
        with self.lock:
            if self.answers:
                return self.answers.pop(0)
            if self.token and handler.headers["authorization"] != f"Bearer {self.token}":
                return HTTPStatus.UNAUTHORIZED
            if handler.path != EVENTS_PATH or handler.headers["content-type"] != CONTENT_TYPE:
                return HTTPStatus.NOT_FOUND
            try:
                decode_batch(frame)
            except CodecError:
                return HTTPStatus.BAD_REQUEST
            self.frames.append(frame)
            return HTTPStatus.OK


class _Handler(BaseHTTPRequestHandler):
    """One connection, kept open between frames."""

    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        """Read the frame whole, then answer."""
        frame = self.rfile.read(int(self.headers["content-length"]))
        answer = self.server.answer_to(self, frame)
        self.send_response(answer)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that runs in a thread of its own."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,), name="receiver", daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        receiver.shutdown()
        receiver.server_close()
        thread.join()
