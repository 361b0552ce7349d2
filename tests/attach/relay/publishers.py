"""A publisher as vLLM has one: a PUB socket, numbers from 0, and a ROUTER that sends again what was kept."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final, Self

import msgspec
import zmq

END: Final = b"\xff" * 8
TOPIC: Final = b"kv"


def stored(*hashes: int, parent: int | None = None, **fields: object) -> dict[str, object]:
    """A BlockStored of vLLM 0.32, a map."""
    tokens = list(range(16 * len(hashes)))
    told = {"block_hashes": list(hashes), "parent_block_hash": parent, "token_ids": tokens, "block_size": 16}
    return {"type": "BlockStored", **told, "lora_id": None, "medium": "GPU", "lora_name": None, **fields}


def removed(*hashes: int) -> dict[str, object]:
    """A BlockRemoved."""
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU"}


def payload(events: Sequence[dict[str, object]], ts: float | None = None, rank: int = 0) -> bytes:
    """A batch as it stands in the third frame."""
    return msgspec.msgpack.encode([time.time() if ts is None else ts, list(events), rank])


class Publisher:
    """Publishes on ports of its own (or a given one); use as a context. `with_topic` is how replies look since vLLM 0.27."""

    def __init__(self, port: int = 0, replay_port: int = 0, *, with_topic: bool = True) -> None:
        self._context = zmq.Context()
        self._live: Any = self._context.socket(zmq.XPUB)
        self._router: Any = self._context.socket(zmq.ROUTER)
        self.port = _bind(self._live, port)
        self.replay_port = _bind(self._router, replay_port)
        self._with_topic = with_topic
        self._kept: list[tuple[int, bytes]] = []  # guarded by _lock
        self._next = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="test-replay")

    @property
    def address(self) -> str:
        """The live endpoint."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def replay_address(self) -> str:
        """The replay endpoint."""
        return f"tcp://127.0.0.1:{self.replay_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End; the ports are free then. May be called again."""
        self._stop.set()
        self._thread.join()
        self._context.destroy(0)

    def wait_for_subscriber(self) -> None:
        """Until somebody listens: what is published before is lost on purpose by ZeroMQ."""
        assert self._live.poll(10_000), "nobody subscribed within 10 s"

        self._live.recv()

    def publish(self, *events: dict[str, object], lost: bool = False, kept: bool = True, rank: int = 0) -> None:
        """One batch: sent, unless it gets lost on the way; kept for replay, unless it is too old for that."""
        raw = payload(events, rank=rank)
        with self._lock:
            number, self._next = self._next, self._next + 1
            if kept:
                self._kept.append((number, raw))
        if not lost:
            self._live.send_multipart([TOPIC, number.to_bytes(8, "big"), raw])

    def send_raw(self, frames: Sequence[bytes]) -> None:
        """Any message at all."""
        self._live.send_multipart(list(frames))

    def _serve(self) -> None:
        """Answer replay requests, one message a batch and an end marker."""
        while not self._stop.is_set():
            if not self._router.poll(50):
                continue
            client, _, first = self._router.recv_multipart()
            with self._lock:
                kept = [one for one in self._kept if one[0] >= int.from_bytes(first, "big")]
            topic = [TOPIC] if self._with_topic else []
            for number, raw in kept:
                self._router.send_multipart([client, b"", *topic, number.to_bytes(8, "big"), raw])
            self._router.send_multipart([client, b"", *([b""] if self._with_topic else []), END, b""])


def _bind(socket: Any, port: int) -> int:
    """Bind to a port of loopback, any where it is 0."""
    if port:
        socket.bind(f"tcp://127.0.0.1:{port}")
        return port
    chosen: int = socket.bind_to_random_port("tcp://127.0.0.1")
    return chosen
