"""Makes a client of kafka-python so that one that cannot reach a broker gives up in time, and leaves nothing behind.

A constructor of that library connects. When it gives up it raises and forgets its sockets and its thread; and for a TLS
handshake that nobody answers it waits for ever. Loads no Kafka client before it is asked for one: the caller brings the class.
"""

import contextlib
import socket
import ssl
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

_Client = TypeVar("_Client")
_NETWORK: Final = "kafka_client"
_TIMEOUT: Final = "bootstrap_timeout_ms"
_PATIENCE_S: Final = 0.25
_ENCRYPTED: Final = frozenset({"SSL", "SASL_SSL"})


def make_client(kind: type[_Client], settings: Mapping[str, Any]) -> _Client:
    """A producer, consumer or admin client. Blocks until a broker answers, for `bootstrap_timeout_ms` at most.

    Raises whatever the constructor raises; its connections are closed by then. Those of a client that was made are closed
    when it is.
    """
    from kvtrail_schema.kafka_network import ClosingSelector  # noqa: PLC0415 - loads the client, as the caller has

    defaults: dict[str, Any] = kind.DEFAULT_CONFIG  # type: ignore[attr-defined]  # the library has no types
    made: list[Any] = []
    context = _context(settings) if settings.get("security_protocol") in _ENCRYPTED else None

    def network(**given: Any) -> Any:
        made.append(defaults[_NETWORK](net=ClosingSelector(**given), **given))
        return made[0]

    own = {_NETWORK: network, "ssl_context": context}
    try:
        with _ended_after(context, settings.get(_TIMEOUT, defaults[_TIMEOUT]) / 1000):
            return kind(**{**settings, **own})
    except BaseException:
        for client in made:
            client.close()
        if context is not None:
            context.close_all()
        raise


class _Context(ssl.SSLContext):
    """Knows the sockets that it encrypts, as long as somebody uses them."""

    sockets: "weakref.WeakSet[ssl.SSLSocket]"

    def wrap_socket(self, *args: Any, **named: Any) -> ssl.SSLSocket:
        """Encrypt a socket, and remember it."""
        wrapped = super().wrap_socket(*args, **named)
        self.sockets.add(wrapped)
        return wrapped

    def end_all(self) -> None:
        """End every connection; whoever waits for one hears of it. Any thread."""
        for wrapped in list(self.sockets):
            with contextlib.suppress(OSError, ValueError):
                # The plain socket's own: that of TLS would forget the handshake that its owner is still in.
                socket.socket.shutdown(wrapped, socket.SHUT_RDWR)

    def close_all(self) -> None:
        """Close every socket. Only when nobody uses them any more."""
        for wrapped in list(self.sockets):
            wrapped.close()


def _context(settings: Mapping[str, Any]) -> _Context:
    """How to encrypt, from the settings of the client's names.

    Raises:
        OSError: a file cannot be read, or holds no certificate or key.
    """
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.sockets = weakref.WeakSet()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.get("ssl_check_hostname", True)
    if settings.get("ssl_cafile"):
        context.load_verify_locations(settings["ssl_cafile"])
    else:
        context.load_default_certs()
    if settings.get("ssl_certfile"):
        context.load_cert_chain(settings["ssl_certfile"], settings.get("ssl_keyfile"), settings.get("ssl_password"))
    return context


@contextlib.contextmanager
def _ended_after(context: _Context | None, timeout_s: float) -> Iterator[None]:
    """End the connections of a context if the block takes too long, and those that are begun after that."""
    if context is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        wait_s = timeout_s + _PATIENCE_S
        while not done.wait(wait_s):
            context.end_all()
            wait_s = _PATIENCE_S

    thread = threading.Thread(target=watch, name="kvtrail-kafka-handshake", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
