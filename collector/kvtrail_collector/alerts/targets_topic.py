"""Targets that are Kafka topics: `kafka://host:port[,host:port]/topic`. Loads no Kafka client."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_schema.errors import OptionsInvalid
from kvtrail_schema.kafka_options import KafkaOptions, read_options
from kvtrail_schema.kafka_record import check_topic, split_servers

PREFIX: Final = "kafka://"
_LOCAL: Final = ("localhost:", "127.", "[::1]:")


class TopicAddress(NamedTuple):
    """Brokers to begin with, a topic, and how they are spoken to."""

    servers: tuple[str, ...]
    topic: str
    options: KafkaOptions

    def __str__(self) -> str:
        """As it is written; never a secret."""
        return f"{PREFIX}{','.join(self.servers)}/{self.topic}"


def topic_address(url: str, options_file: str) -> TopicAddress:
    """The address that a url and a file of options give.

    Raises:
        OptionsInvalid: they give none.
    """
    servers, _, topic = url.removeprefix(PREFIX).partition("/")
    options = read_options(Path(options_file) if options_file else None)
    return TopicAddress(tuple(split_servers(servers)), check_topic(topic), options)


def topic_problem(url: str, options_file: str, *, plain: bool) -> str:
    """What is wrong with a topic as a target, or an empty text; `plain`: the network in between is trusted."""
    try:
        address = topic_address(url, options_file)
    except OptionsInvalid as error:
        return str(error)
    if find_spec("kafka") is None:
        return "a topic needs the Kafka client: pip install 'kvtrail[kafka]'"
    is_local = all(server.startswith(_LOCAL) for server in address.servers)
    if not (address.options.is_encrypted or is_local or plain):
        return (
            "its records go in clear: give a kafka_options_file with SSL, or say plain_http = true where the network is trusted"
        )
    return ""
