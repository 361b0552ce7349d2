"""Where publishers are: `zmq://host:port`, as operators write it, or any address that ZeroMQ connects to."""

from typing import Final
from urllib.parse import urlsplit

from kvtrail_agent.errors import SettingsInvalid

_PASSED_ON: Final = ("ipc://", "inproc://")


def zmq_address(address: str) -> str:
    """An address as ZeroMQ takes it.

    Raises:
        SettingsInvalid: it names no host and port.
    """
    if address.startswith(_PASSED_ON):
        return address
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in {"zmq", "tcp"} or not host or not port:
        raise SettingsInvalid(f"{address!r}: give zmq://HOST:PORT, as in vLLM's --kv-events-config, or ipc:///path")
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
