"""Promises of making a client: it gives up in time, also on a handshake that nobody answers, and leaves nothing open."""

import contextlib
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, errors
from kvtrail_schema.kafka_client import make_client
from kvtrail_schema.kafka_network import ClosingSelector

KINDS = [KafkaProducer, KafkaConsumer, KafkaAdminClient]
BY_NAME = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "a", "sasl_plain_password": "b"}
SECURITY = [{"security_protocol": "PLAINTEXT"}, {"security_protocol": "SSL"}, {"security_protocol": "SASL_SSL", **BY_NAME}]


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("security", SECURITY, ids=lambda security: security["security_protocol"])
def test_a_broker_that_hangs_is_given_up(silent: str, kind: type, security: dict[str, str]) -> None:
    """The caller has its error soon after the time that it set; no thread and no socket of the attempt is left."""
    threads, begin = set(threading.enumerate()), time.monotonic()
    with pytest.raises(errors.KafkaError):
        make_client(kind, {"bootstrap_servers": [silent], "bootstrap_timeout_ms": 400, **security})
    gc.collect()  # a socket that was left open would be told now, and a warning is a failure
    left = {thread for thread in threading.enumerate() if thread not in threads and thread.is_alive()}

    assert time.monotonic() - begin < 10
    assert [thread.name for thread in left if thread.name.startswith("kvtrail")] == []


def test_files_of_tls_that_are_none_are_an_error_of_the_system(tmp_path: object) -> None:
    """An authority that cannot be read is told at once, before anything is connected."""
    with pytest.raises(OSError, match="No such file"):
        make_client(KafkaProducer, {"security_protocol": "SSL", "ssl_cafile": f"{tmp_path}/none.pem"})


@pytest.mark.parametrize("wish", ["wait_write", "wait_read"])
def test_what_is_under_way_when_a_client_is_closed_leaves_no_socket_open(wish: str) -> None:
    """The library cancels whoever waits to write a request or to read its answer, and forgets the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        if wish == "wait_write":
            fill(ours)
        network = ClosingSelector()
        network.start()

        async def wait() -> None:
            """For the socket, for ever."""
            await getattr(network, wish)(ours)

        network.call_soon_with_future(wait)
        until(lambda: ours in network._waited_for)
        network.close()

    assert -1 == ours.fileno()


def test_a_client_that_is_closed_in_the_middle_of_a_request_leaves_nothing_open(bootstrap: str) -> None:
    """Ten times a real consumer is closed just when it asks for something; open sockets would be told by the collection."""
    for _ in range(10):
        consumer = make_client(KafkaConsumer, {"bootstrap_servers": [bootstrap]})
        consumer._client._manager.cluster.request_update()
        consumer.close(autocommit=False)
        assert all(left.fileno() == -1 for left in consumer._client._net._waited_for)
    del consumer
    gc.collect()


def fill(end: socket.socket) -> None:
    """Write until nothing more can be written."""
    end.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            end.send(bytes(65536))


def until(is_so: Callable[[], bool]) -> None:
    """Wait for it, five seconds at most."""
    deadline = time.monotonic() + 5
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
