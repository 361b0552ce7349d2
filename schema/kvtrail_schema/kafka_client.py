"""Makes a client of kafka-python so that one that cannot reach a broker leaves nothing behind.

A constructor of that library connects; when it gives up it raises and forgets its sockets and its thread. Loads no Kafka
client: the caller brings the class.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

_Client = TypeVar("_Client")
_NETWORK: Final = "kafka_client"


def make_client(kind: type[_Client], settings: Mapping[str, Any]) -> _Client:
    """A producer, consumer or admin client. Blocks until a broker answers, for `bootstrap_timeout_ms` at most.

    Raises whatever the constructor raises; its connections are closed by then.
    """
    defaults: dict[str, Any] = kind.DEFAULT_CONFIG  # type: ignore[attr-defined]  # the library has no types
    made: list[Any] = []

    def network(**given: Any) -> Any:
        made.append(defaults[_NETWORK](**given))
        return made[0]

    try:
        return kind(**settings, **{_NETWORK: network})
    except BaseException:
        for client in made:
            client.close()
        raise
