"""HTTP in particular: which answers mean never, which mean later, and how a token is carried."""

import socket
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from kvtrail_agent.errors import BatchRejected, SettingsInvalid, TransportUnavailable
from kvtrail_agent.transports import open_transport
from kvtrail_agent.transports.base import check_address
from kvtrail_agent.transports.http import HttpTransport

from tests.agent.frames import frame_of
from tests.agent.receivers import Receiver, receiving

NEVER = [HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY]
LATER = [
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.TEMPORARY_REDIRECT,
]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server that takes frames."""
    with receiving() as running:
        yield running


@pytest.mark.parametrize("status", NEVER)
def test_a_frame_that_is_none_is_rejected(status: HTTPStatus, receiver: Receiver) -> None:
    """The collector read the frame and refuses it for good: the error names address, status and answer."""
    transport = open_transport(receiver.url)
    receiver.answers.append(status)
    with pytest.raises(BatchRejected, match=rf"127\.0\.0\.1:{receiver.server_port} answered {status.value}: {{}}"):
        transport.send(*frame_of(1))

    transport.close()


@pytest.mark.parametrize("status", LATER)
def test_what_can_be_mended_is_tried_again(status: HTTPStatus, receiver: Receiver) -> None:
    """A wrong token or address and a busy or broken collector lose nothing: the same frame goes through later."""
    transport = open_transport(receiver.url)
    receiver.answers.append(status)
    with pytest.raises(TransportUnavailable, match=f"answered {status.value}"):
        transport.send(*frame_of(1))
    transport.send(*frame_of(1))
    transport.close()

    assert [frame_of(1)[0]] == receiver.frames


def test_a_closed_port_is_unavailable(free_port: int) -> None:
    """Nobody listens: later."""
    transport = open_transport(f"http://127.0.0.1:{free_port}")
    with pytest.raises(TransportUnavailable, match="ConnectError"):
        transport.send(*frame_of(1))

    transport.close()


def test_a_silent_server_is_unavailable_in_time() -> None:
    """A server that accepts and never answers holds the shipper for its timeout alone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = HttpTransport(httpx.Client(base_url=url, timeout=0.2, trust_env=False))
        begin = time.monotonic()
        with pytest.raises(TransportUnavailable, match="ReadTimeout"):
            transport.send(*frame_of(1))
        took_s = time.monotonic() - begin
        transport.close()

    assert took_s < 3.0


def test_a_server_that_hangs_up_is_unavailable() -> None:
    """A connection that ends without an answer acknowledges nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept_and_close() -> None:
            server.accept()[0].close()

        hang_up = threading.Thread(target=accept_and_close, name="hang-up", daemon=True)
        hang_up.start()
        transport = open_transport(f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(TransportUnavailable):
            transport.send(*frame_of(1))
        hang_up.join()

    transport.close()


def test_the_token_is_read_from_its_file(receiver: Receiver, private_dir: Path) -> None:
    """Each frame carries the token; a wrong one is "later", for an operator to mend."""
    receiver.token = "right"
    for name in ("right", "wrong"):
        (private_dir / name).touch(mode=0o600)
        (private_dir / name).write_text(f"{name}\n")
    right, wrong = (open_transport(receiver.url, private_dir / name) for name in ("right", "wrong"))
    right.send(*frame_of(1))
    with pytest.raises(TransportUnavailable, match="401"):
        wrong.send(*frame_of(4))
    right.close()
    wrong.close()

    assert [frame_of(1)[0]] == receiver.frames


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_that_others_can_read_is_refused(mode: int, private_dir: Path) -> None:
    """The error names the file and what to do."""
    file = private_dir / "token"
    file.write_text("secret")
    file.chmod(mode)
    with pytest.raises(SettingsInvalid, match=f"{file} may be read by others: chmod 600 it"):
        open_transport("http://127.0.0.1:1", file)


@pytest.mark.parametrize(("content", "problem"), [(None, "No such file"), (" \n", "is empty")])
def test_a_token_that_is_none_is_refused(content: str | None, problem: str, private_dir: Path) -> None:
    """A missing and an empty file are errors at start, not at each frame."""
    file = private_dir / "token"
    if content is not None:
        file.touch(mode=0o600)
        file.write_text(content)
    with pytest.raises(SettingsInvalid, match=problem):
        open_transport("http://127.0.0.1:1", file)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "collector:4750",
        "ftp://host/x",
        "http://",
        "http:///path",
        "http://[::1",
        "http://host:99999",
        "http://host:0",
        "file:",
    ],
)
def test_addresses_that_lead_nowhere_are_refused(url: str) -> None:
    """An address without a known scheme or a place is an error at start that shows the address."""
    with pytest.raises(SettingsInvalid, match="transport "):
        check_address(url, None)
    with pytest.raises(SettingsInvalid, match="transport "):
        open_transport(url)
