"""A collector that says what it is told to, over real HTTP; it remembers what it was asked."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """One question that came in."""

    path: str
    params: Mapping[str, str]
    authorization: str | None


@dataclass(slots=True)
class Script:
    """What is answered, by path; a path that ends in a slash serves all below it. Raw bytes go out as they are."""

    answers: Mapping[str, Any]
    status: int = 200
    asked: list[Asked] = field(default_factory=list)  # appended to by server threads; reading needs no lock
    url: str = ""

    def answer(self, path: str) -> Any:
        """The answer to a path, or None."""
        exact = self.answers.get(path)
        return exact if exact is not None else self.answers.get(path.rsplit("/", 1)[0] + "/")

    def params_of(self, path: str) -> list[Mapping[str, str]]:
        """The parameters of each question to a path, in order."""
        return [asked.params for asked in self.asked if asked.path == path]


@contextmanager
def fake_collector(answers: Mapping[str, Any], *, status: int = 200) -> Iterator[Script]:
    """Serve answers on a free port of loopback until the block ends."""
    script = Script(answers, status)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="fake-collector", daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    """A handler class for one script."""

    class Handler(BaseHTTPRequestHandler):
        """Answers GET."""

        def do_GET(self) -> None:
            """Answer from the script, or with a 404 in the published shape."""
            url = urlsplit(self.path)
            script.asked.append(Asked(url.path, dict(parse_qsl(url.query)), self.headers.get("authorization")))
            found = script.answer(url.path)
            trouble = {"error": {"what": "no such thing is stored", "where": url.path, "do": "list them"}}
            body = found if isinstance(found, bytes) else json.dumps(trouble if found is None else found).encode()
            self.send_response(404 if found is None else script.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    return Handler
