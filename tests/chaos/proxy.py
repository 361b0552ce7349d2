"""A wire between agent and collector that can be cut and held up: a TCP proxy on loopback."""

import contextlib
import selectors
import socket
import threading
from typing import Final

_CHUNK_BYTES: Final = 1 << 16
_TICK_S: Final = 0.05


class Proxy:
    """Carries connections to a port of this host. `cut` breaks them all and refuses new ones, `stall` holds all bytes."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_cut = threading.Event()
        self._flows = threading.Event()
        self._flows.set()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos-proxy", daemon=True)
        self._thread.start()

    def lead_to(self, target_port: int) -> None:
        """Lead to another port from the next connection on."""
        self._target_port = target_port

    def cut(self) -> None:
        """Break every connection, and each new one at once."""
        self._is_cut.set()

    def stall(self) -> None:
        """Keep connections and carry nothing."""
        self._flows.clear()

    def mend(self) -> None:
        """All is well again."""
        self._is_cut.clear()
        self._flows.set()

    def close(self) -> None:
        """End."""
        self._closed.set()
        self.mend()
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        """One loop for all connections."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            peers: dict[socket.socket, socket.socket] = {}
            while not self._closed.is_set():
                if not self._flows.wait(_TICK_S):
                    continue
                if self._is_cut.is_set():
                    self._drop_all(selector, peers)
                for key, _ in selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept(selector, peers)
                    elif isinstance(key.fileobj, socket.socket) and key.fileobj in peers:
                        self._carry(key.fileobj, selector, peers)
            self._drop_all(selector, peers)

    def _accept(self, selector: selectors.BaseSelector, peers: dict[socket.socket, socket.socket]) -> None:
        """Take a connection and make the one behind it."""
        near, _ = self._listener.accept()
        if self._is_cut.is_set():
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._target_port), timeout=2)
        except OSError:
            near.close()
            return
        near.settimeout(2)
        for one, other in ((near, far), (far, near)):
            peers[one] = other
            selector.register(one, selectors.EVENT_READ)

    def _carry(
        self, source: socket.socket, selector: selectors.BaseSelector, peers: dict[socket.socket, socket.socket]
    ) -> None:
        """Carry what one side has said to the other."""
        try:
            data = source.recv(_CHUNK_BYTES)
            if data:
                peers[source].sendall(data)
                return
        except OSError:
            pass
        self._drop(source, selector, peers)

    def _drop(self, one: socket.socket, selector: selectors.BaseSelector, peers: dict[socket.socket, socket.socket]) -> None:
        """Close both sides of a connection."""
        for end in (one, peers[one]):
            peers.pop(end, None)
            selector.unregister(end)
            with contextlib.suppress(OSError):
                end.close()

    def _drop_all(self, selector: selectors.BaseSelector, peers: dict[socket.socket, socket.socket]) -> None:
        """Close every connection."""
        while peers:
            self._drop(next(iter(peers)), selector, peers)
