"""The event loop of a Kafka client, so that a client that is closed leaves no socket open. Loads the Kafka client.

The library's own `close` cancels what is under way, and what is cancelled forgets its socket: one that is being connected,
and one to which a request is being written at that moment.
"""

import weakref
from typing import Any

from kafka.net.selector import NetworkSelector


class ClosingSelector(NetworkSelector):  # type: ignore[misc]  # the library has no types
    """Closes at its end every socket that anybody ever waited for on it. As the library's: one thread at a time."""

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        self._waited_for: weakref.WeakSet[Any] = weakref.WeakSet()

    def register_event(self, fileobj: Any, event: int, task: Any) -> None:
        """Wait for a socket, and remember it: all that a client connects comes by here."""
        self._waited_for.add(fileobj)
        super().register_event(fileobj, event, task)

    def close(self) -> None:
        """End all that is under way, then what it left open."""
        super().close()
        for left in list(self._waited_for):
            left.close()
