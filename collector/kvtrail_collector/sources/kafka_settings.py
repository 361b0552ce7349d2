"""The collector's settings for Kafka, checked, and in the names of the client. Loads no Kafka client."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kvtrail_schema.errors import OptionsInvalid
from kvtrail_schema.kafka_options import KafkaOptions, read_options
from kvtrail_schema.kafka_record import check_topic, split_servers

from kvtrail_collector.errors import SettingsInvalid
from kvtrail_collector.settings import Settings

_CLIENTS: Final = ("kafka", "crc32c")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What to read, from whom, and how they are to be spoken to."""

    servers: tuple[str, ...]
    topic: str
    dead_letter_topic: str
    options: KafkaOptions

    @property
    def source(self) -> str:
        """The name under which positions are stored."""
        return f"kafka:{self.topic}"

    @property
    def where(self) -> str:
        """The topic as people write it; never a secret."""
        return f"kafka://{','.join(self.servers)}/{self.topic}"

    def client(self) -> dict[str, Any]:
        """What every client is told."""
        return {
            **self.options.client_settings(),
            "bootstrap_servers": list(self.servers),
            "client_id": "kvtrail-collector",
            "bootstrap_timeout_ms": 3_000,
            "reconnect_backoff_max_ms": 1_000,
        }

    def consumer(self) -> dict[str, Any]:
        """What a consumer is told: no group, no offsets at the brokers, and none guessed where one is gone."""
        return {
            **self.client(),
            "metrics_enabled": False,
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "metadata_max_age_ms": 3_000,
            "request_timeout_ms": 5_000,
            "fetch_max_wait_ms": 100,
            "fetch_max_bytes": 32 << 20,
            "max_partition_fetch_bytes": 8 << 20,
        }


def kafka_settings(settings: Settings) -> KafkaSettings | None:
    """What the settings say of Kafka; None where they name no brokers.

    Raises:
        SettingsInvalid: the brokers, a topic or the file of options cannot be used, or the client is not installed.
    """
    if not settings.kafka_bootstrap:
        return None
    missing = [name for name in _CLIENTS if find_spec(name) is None]
    if missing:
        what = f"reading from Kafka needs {' and '.join(missing)}"
        raise SettingsInvalid(what, where="kafka_bootstrap", do="pip install 'kvtrail[kafka]'")
    try:
        dead_letters = settings.kafka_dead_letter_topic
        return KafkaSettings(
            servers=tuple(split_servers(settings.kafka_bootstrap)),
            topic=check_topic(settings.kafka_topic),
            dead_letter_topic=check_topic(dead_letters) if dead_letters else "",
            options=read_options(Path(settings.kafka_options_file) if settings.kafka_options_file else None),
        )
    except OptionsInvalid as error:
        raise SettingsInvalid(str(error), where="Kafka", do="mend the setting; see docs/kafka.md") from error
