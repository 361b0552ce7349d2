"""Runs the collector: one process, one event loop, one store. Prints nothing; says where it listens."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn
from kvtrail_schema.batch import Limits
from kvtrail_schema.clock import Clock, SystemClock

from kvtrail_collector.alerts.build import make_alerting, running
from kvtrail_collector.app import create_app
from kvtrail_collector.errors import SettingsInvalid
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.seal_settings import seal_policy
from kvtrail_collector.security import make_guard
from kvtrail_collector.settings import Settings
from kvtrail_collector.sources.kafka_settings import kafka_settings
from kvtrail_collector.store import Store
from kvtrail_collector.store.fresh import fresh_files

if TYPE_CHECKING:
    from kvtrail_collector.sources.kafka import KafkaSource

_BACKLOG: Final = 128
_STOP_TIMEOUT_S: Final = 10
_OWNER_ONLY: Final = 0o077


class Address(NamedTuple):
    """Where a collector listens."""

    host: str
    port: int
    scheme: str

    @property
    def url(self) -> str:
        """The address as clients write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class CollectorServer:
    """A server that is bound but not yet running: `address` is true from the start, `run` blocks until `stop`."""

    def __init__(self, settings: Settings, store: Store, *, clock: Clock, sources: Mapping[str, str] | None = None) -> None:
        self._source = _open_source(settings, store, clock)
        self._alerting = make_alerting(settings, store, clock)
        monitor = None if self._source is None else self._source.monitor
        app = create_app(settings, store, clock, sources, monitor, alerter=self._alerting.alerter)
        self._keeper = LedgerKeeper(store, clock)
        self._watch = self._alerting.invariants
        self._socket = _bind(settings)
        self._server = _QuietServer(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                ws="none",
                ssl_certfile=settings.tls_certificate or None,
                ssl_keyfile=settings.tls_key or None,
                timeout_graceful_shutdown=_STOP_TIMEOUT_S,
            )
        )
        host, port = self._socket.getsockname()[:2]
        self.address: Final = Address(host, port, "https" if settings.tls_certificate else "http")

    def run(self) -> None:
        """Answer calls, read from Kafka if that is set, keep ledgers, watch invariants and alerts, until `stop`. Blocks;
        finishes what began.
        """
        with contextlib.closing(self._socket), self._watch, running(self._alerting), _reading(self._source), self._keeper:
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Ask it to end. Any thread, or a signal handler; returns at once."""
        self._server.should_exit = True


class _QuietServer(uvicorn.Server):
    """Leaves signals to whoever owns the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def serve(
    settings: Settings,
    *,
    on_bound: Callable[[Address], None],
    sources: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> None:
    """Open the store and answer calls until SIGTERM or SIGINT. Blocks; the process' main thread should call it.

    What was acknowledged is on disk whenever and however it ends; a graceful end also writes what still waits.

    Args:
        settings: see `settings.py`; port 0 takes a free one.
        on_bound: told where it listens, once calls can be made.
        sources: where each setting came from, for `/readyz`.
        clock: the clocks; absent, the machine's.

    Raises:
        BindRefused, SettingsInvalid: the address, or a setting, cannot be used. No file is left that was not there.
        StoreError: the store cannot be opened. As above.
    """
    make_guard(settings)
    os.umask(_OWNER_ONLY)
    with fresh_files(settings.store) as fresh, open_store(settings, clock) as store:
        server = CollectorServer(settings, store, clock=clock or SystemClock(), sources=sources)
        fresh.keep()
        on_bound(server.address)
        with _stopped_by_signals(server):
            server.run()


def open_store(settings: Settings, clock: Clock | None = None) -> Store:
    """The store that the settings name."""
    return Store.open(
        settings.store,
        queue_batches=settings.queue_batches,
        queue_bytes=settings.queue_bytes,
        memory_limit=settings.memory_limit or None,
        seal=seal_policy(settings),
        clock=clock,
    )


@contextlib.contextmanager
def _stopped_by_signals(server: CollectorServer) -> Iterator[None]:
    """Let SIGTERM and SIGINT end a server in order, where this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: server.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_source(settings: Settings, store: Store, clock: Clock) -> KafkaSource | None:
    """The source that the settings ask for; its client is loaded for those who do.

    Raises:
        SettingsInvalid: they ask for one that cannot be.
    """
    kafka = kafka_settings(settings)
    if kafka is None:
        return None
    from kvtrail_collector.sources.kafka import KafkaSource  # noqa: PLC0415 - an extra that most collectors need not have

    limits = Limits(frame_bytes=settings.body_bytes, body_bytes=settings.decoded_bytes)
    return KafkaSource(kafka, store, limits=limits, clock=clock)


@contextlib.contextmanager
def _reading(source: KafkaSource | None) -> Iterator[None]:
    """Let a source read while a server runs."""
    if source is None:
        yield
        return
    source.start()
    try:
        yield
    finally:
        source.stop()


def _bind(settings: Settings) -> socket.socket:
    """A listening socket on the address of the settings.

    Raises:
        SettingsInvalid: the address does not exist here, or is taken.
    """
    where = f"{settings.host}:{settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsInvalid(str(error), where=where, do="choose an address of this machine with KVTRAIL_HOST") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise SettingsInvalid(
            str(error), where=where, do="choose another port with KVTRAIL_PORT, or 0 for a free one"
        ) from error
    return listening
