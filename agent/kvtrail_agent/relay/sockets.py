"""The sockets of one publisher: SUB for what it sends, DEALER for what it has kept. Used by the relay's thread.

A REQ socket would take the first answer only; a replay is many.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.relay.frames import END_SEQ, Published, read_live, read_replayed

_MOST_QUEUED: Final = 100_000
_MOST_REPLAYED: Final = 200_000
_SILENCE_MS: Final = 2_000
"""A publisher that is asked while its engine idles answers within 100 ms."""


def zmq_module() -> Any:
    """The client library of ZeroMQ.

    Raises:
        SettingsInvalid: it is not installed.
    """
    try:
        import zmq  # noqa: PLC0415 - only who relays needs it
    except ImportError as error:
        raise SettingsInvalid("the relay needs pyzmq: pip install 'kvtrail[relay]'") from error
    return zmq


class Sockets:
    """Two sockets, opened at once; they connect, and connect again, by themselves."""

    def __init__(self, address: str, replay_address: str | None, topic: str, dialect: Dialect) -> None:
        self._zmq = zmq_module()
        self._context = self._zmq.Context()
        self._dialect = dialect
        self._replay_address = replay_address
        self.unreadable = 0
        """Messages that are none of this protocol."""
        try:
            self._live = self._context.socket(self._zmq.SUB)
            self._live.setsockopt(self._zmq.RCVHWM, _MOST_QUEUED)
            self._live.setsockopt(self._zmq.SUBSCRIBE, topic.encode())
            self._live.connect(address)
        except self._zmq.ZMQError as error:
            self.close()
            raise SettingsInvalid(f"{address}: {error}") from error

    def receive(self, timeout_ms: int) -> Published | None:
        """The next live message; None where none came, or one that is none."""
        if not self._live.poll(timeout_ms):
            return None
        message = read_live(self._live.recv_multipart(), self._dialect)
        self.unreadable += message is None
        return message

    def replay(self, first: int) -> list[Published] | None:
        """What the publisher has kept from a number on; None where it has no replay socket, or says nothing for 2 s."""
        if self._replay_address is None:
            return None
        socket = self._context.socket(self._zmq.DEALER)
        socket.setsockopt(self._zmq.LINGER, 0)
        socket.setsockopt(self._zmq.RCVHWM, 0)
        try:
            socket.connect(self._replay_address)
            socket.send_multipart([b"", first.to_bytes(8, "big")])
            found = list(self._answers(socket))
        except self._zmq.ZMQError:
            return None
        finally:
            socket.close(0)
        return found or None

    def _answers(self, socket: Any) -> Iterator[Published]:
        """Replayed batches up to the end marker, silence, or more than any publisher keeps."""
        until_s = time.monotonic() + 30 * _SILENCE_MS / 1000
        for _ in range(_MOST_REPLAYED):
            if time.monotonic() > until_s or not socket.poll(_SILENCE_MS):
                return
            message = read_replayed(socket.recv_multipart(), self._dialect)
            if message is None:
                self.unreadable += 1
            elif message.seq == END_SEQ:
                return
            else:
                yield message

    def close(self) -> None:
        """Let go of both."""
        self._context.destroy(0)
