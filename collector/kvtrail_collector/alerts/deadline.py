"""A bound on one call by HTTP as a whole: a client's timeouts are of each read, and one that trickles has endless reads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any, Final, Self

_CONNECTED: Final = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})


class Deadline:
    """Cuts a call's connection off once its time is over. A context manager; a thread of its own, for as long as the call."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # guarded by _lock
        self.is_over = False  # guarded by _lock
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.name, self._timer.daemon = "kvtrail-webhook-deadline", True

    def __enter__(self) -> Self:
        """Time runs."""
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is cut off any more."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """What the client does now (the extension `trace` of httpcore): it has connected, or speaks TLS from here on."""
        if name in _CONNECTED:
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.is_over:
                    self._shut()

    def _cut(self) -> None:
        """The time is over. On the timer's thread."""
        with self._lock:
            self.is_over = True
            self._shut()

    def _shut(self) -> None:
        """Nothing more is read or written; whoever waits for it hears so. The plain verb, also where TLS is spoken."""
        if self._socket is not None:
            try:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return  # it is closed already
