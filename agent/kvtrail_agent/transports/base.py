"""What every transport does, and how one is chosen by its address.

To add one: a file beside this one with a class of these three verbs and an `open` function, a line in `_OPENERS`, and a
line in the conformance suite.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from kvtrail_schema.header import BatchHeader

from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.kafka_address import read_address
from kvtrail_agent.transports.token import read_token


class Transport(Protocol):
    """**Protocol:** carries frames to where events are stored. Called by the shipper's one thread, never by the engine."""

    def send(self, frame: bytes, header: BatchHeader) -> None:
        """Hand a frame over; the same frame may come again. Blocks within the transport's own timeout.

        A return does not mean that the frame is stored: `flush` does.

        Raises:
            TransportUnavailable: nothing is known of the frame; send it again later.
            BatchRejected: the other side read the frame and will never take it.
        """
        ...

    def flush(self, timeout_s: float) -> None:
        """Return when every frame that was handed over is acknowledged.

        Raises:
            TransportUnavailable: that did not happen in time; send the frames since the last good flush again.
        """
        ...

    def close(self) -> None:
        """Let go of connections and files. Does not flush."""
        ...


_OPENERS: Final = {
    "http": "kvtrail_agent.transports.http",
    "https": "kvtrail_agent.transports.http",
    "file": "kvtrail_agent.transports.file",
    "kafka": "kvtrail_agent.transports.kafka",
}


def check_address(url: str, token_file: Path | None, kafka_options_file: Path | None = None) -> str:
    """See at start, without loading a transport, that an address and its files can be used; the module that opens it.

    Raises:
        SettingsInvalid: no transport has that scheme, or the address or a file is not usable.
    """
    if url.startswith("kafka:"):
        # Several brokers in one address are no address to a parser of URLs.
        read_address(url, TransportFiles(token_file, kafka_options_file))
        return _OPENERS["kafka"]
    try:
        parts = urlsplit(url)
        has_place = bool(parts.path if parts.scheme == "file" else parts.hostname) and parts.port != 0
    except ValueError as error:
        message = f"transport {url!r}: {error}"
        raise SettingsInvalid(message) from error
    module = _OPENERS.get(parts.scheme)
    if module is None or not has_place:
        message = (
            f"transport {url!r}: give scheme and place, as in http://127.0.0.1:4750; schemes: {', '.join(sorted(_OPENERS))}"
        )
        raise SettingsInvalid(message)
    if token_file is not None:
        read_token(token_file)
    return module


def open_transport(url: str, token_file: Path | None = None, kafka_options_file: Path | None = None) -> Transport:
    """The transport for an address: `http(s)://host:port`, `file:///directory`, or `kafka://host:port[,host:port]/topic`.

    Raises:
        SettingsInvalid: no transport has that scheme, or the address or a file is not usable.
    """
    module = import_module(check_address(url, token_file, kafka_options_file))
    opener: Callable[[str, TransportFiles], Transport] = module.open
    return opener(url, TransportFiles(token_file, kafka_options_file))
