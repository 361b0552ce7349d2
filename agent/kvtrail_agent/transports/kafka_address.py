"""Reads `kafka://host:port[,host:port]/topic` and the options beside it. Loads no Kafka client: the engine's process checks."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from kvtrail_schema.errors import OptionsInvalid
from kvtrail_schema.kafka_options import KafkaOptions, read_options
from kvtrail_schema.kafka_record import check_topic, split_servers

from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.transports.files import TransportFiles

PREFIX: Final = "kafka://"
_CLIENTS: Final = ("kafka", "crc32c")


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """A topic, the brokers to begin with, and how they are to be spoken to."""

    servers: tuple[str, ...]
    topic: str
    options: KafkaOptions

    def __str__(self) -> str:
        """The address as it is written; never a secret."""
        return f"{PREFIX}{','.join(self.servers)}/{self.topic}"


def read_address(url: str, files: TransportFiles) -> KafkaAddress:
    """The address and its options, checked.

    Raises:
        SettingsInvalid: the address cannot be read, its options cannot be used, or the client is not installed.
    """
    servers, slash, topic = url.removeprefix(PREFIX).partition("/")
    if not url.startswith(PREFIX) or not slash:
        message = f"transport {url!r}: give brokers and topic, as in kafka://127.0.0.1:9092/kvtrail"
        raise SettingsInvalid(message)
    missing = [name for name in _CLIENTS if find_spec(name) is None]
    if missing:
        message = f"transport {url!r} needs {' and '.join(missing)}: pip install 'kvtrail[kafka]'"
        raise SettingsInvalid(message)
    try:
        return KafkaAddress(tuple(split_servers(servers)), check_topic(topic), read_options(files.kafka_options_file))
    except OptionsInvalid as error:
        message = f"transport {url!r}: {error}"
        raise SettingsInvalid(message) from error
