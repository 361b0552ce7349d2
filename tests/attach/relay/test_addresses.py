"""Addresses of publishers, as operators write them."""

import pytest
from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.relay.addresses import zmq_address


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("zmq://127.0.0.1:5557", "tcp://127.0.0.1:5557"),
        ("tcp://node-7:5557", "tcp://node-7:5557"),
        ("zmq://[::1]:5557", "tcp://[::1]:5557"),
        ("ipc:///tmp/kv", "ipc:///tmp/kv"),
    ],
)
def test_addresses_are_taken_as_zeromq_takes_them(address: str, expected: str) -> None:
    """The scheme of the command line, and those of ZeroMQ itself, name the same sockets."""
    assert expected == zmq_address(address)


@pytest.mark.parametrize("address", ["", "127.0.0.1:5557", "http://127.0.0.1:5557", "zmq://127.0.0.1", "zmq://127.0.0.1:high"])
def test_what_names_no_publisher_is_refused(address: str) -> None:
    """The message says what to give."""
    with pytest.raises(SettingsInvalid, match="zmq://HOST:PORT"):
        zmq_address(address)
