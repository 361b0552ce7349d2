"""What stands in the frames of one message: live ones have a topic, replayed ones of vLLM before 0.27 have none."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.vllm_wire import Dialect, WireBatch, read_payload

_SEQ_BYTES: Final = 8
END_SEQ: Final = (1 << 64) - 1
"""The number of the message that ends a replay: -1, as eight bytes."""
_LIVE, _WITH_TOPIC, _BARE = 3, 4, 3


@dataclass(frozen=True, slots=True)
class Published:
    """One batch of a publisher. `batch` is None where the payload is none; `ts_ns` is 0 where it says no time."""

    topic: bytes
    seq: int
    payload: bytes
    batch: WireBatch | None

    @property
    def ts_ns(self) -> int:
        """When the publisher says that it made the batch."""
        return 0 if self.batch is None or self.batch.ts_ns is None else self.batch.ts_ns


def read_live(frames: Sequence[bytes], dialect: Dialect) -> Published | None:
    """A message of the live socket: topic, number, payload; None where it is none."""
    if len(frames) != _LIVE or len(frames[1]) != _SEQ_BYTES:
        return None
    return _published(frames[0], frames[1], frames[2], dialect)


def read_replayed(frames: Sequence[bytes], dialect: Dialect) -> Published | None:
    """A message of the replay socket: an empty frame, a topic in later versions, number, payload; None where it is none."""
    if len(frames) not in {_BARE, _WITH_TOPIC} or len(frames[-2]) != _SEQ_BYTES:
        return None
    return _published(frames[1] if len(frames) == _WITH_TOPIC else b"", frames[-2], frames[-1], dialect)


def _published(topic: bytes, number: bytes, payload: bytes, dialect: Dialect) -> Published:
    """One message with its payload read as far as it can be."""
    batch = None
    with contextlib.suppress(ForeignInvalid):  # the decoder quarantines it in its place
        batch = read_payload(payload, dialect) if payload else None
    return Published(topic, int.from_bytes(number, "big"), payload, batch)
