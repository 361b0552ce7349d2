"""A batch as a Kafka record: which key, which headers. Senders write it, collectors and other readers may rely on it.

The value is the frame as it is. The key is the engine, so that all ranks of a request meet in one partition. Headers let a
reader see whose batch it is, and which seqs, without opening it. Loads no Kafka client.
"""

import re
from typing import Final

from kvtrail_schema.errors import OptionsInvalid
from kvtrail_schema.header import CONTENT_TYPE, BatchHeader

DEFAULT_TOPIC: Final = "kvtrail"
RECORD_OVERHEAD_BYTES: Final = 64 << 10
"""Room beside the frame for key, headers and Kafka's own fields."""

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_LARGEST_PORT: Final = 65_535

Headers = list[tuple[str, bytes]]


def key_of(header: BatchHeader) -> bytes:
    """The key of a batch's record."""
    return header.engine.encode()


def headers_of(header: BatchHeader) -> Headers:
    """The headers of a batch's record; numbers are decimal text, the epoch is hexadecimal as everywhere else."""
    numbers = {"rank": header.rank, "first_seq": header.first_seq, "last_seq": header.last_seq, "count": header.count}
    return [
        ("content-type", CONTENT_TYPE.encode()),
        ("engine", header.engine.encode()),
        ("epoch", f"{header.epoch:016x}".encode()),
        *((name, str(number).encode()) for name, number in numbers.items()),
    ]


def check_topic(topic: str) -> str:
    """A name that Kafka takes for a topic.

    Raises:
        OptionsInvalid: it takes other names only.
    """
    if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
        message = f"Kafka topic {topic!r}: letters, digits, '.', '_' and '-' only, 249 at most"
        raise OptionsInvalid(message)
    return topic


def split_servers(servers: str) -> list[str]:
    """The brokers to begin with, from `host:port[,host:port…]`.

    Raises:
        OptionsInvalid: one has no host or no port.
    """
    parts = [part.strip() for part in servers.split(",")]
    for part in parts:
        match = _SERVER.fullmatch(part)
        if match is None or not 0 < int(match[2]) <= _LARGEST_PORT:
            message = f"Kafka brokers {servers!r}: give host:port[,host:port]"
            raise OptionsInvalid(message)
    return parts
