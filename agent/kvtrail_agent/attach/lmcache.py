"""Attach to LMCache's server in its own process: each event of its bus, with the time of its moment, as events of ours.

`python -m kvtrail_agent.attach.lmcache server --host … ` is `lmcache server …` with the listener in it; settings come from the
environment (`KVTRAIL_ENGINE`, `KVTRAIL_TRANSPORT`, `KVTRAIL_KEY_FILE`). In a program of your own: `listen(bus, settings)`.
"""

import logging
import queue
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.reasons import ErrorReason

from kvtrail_agent.attach.guard import Guard
from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.attach.trtllm import recorders
from kvtrail_agent.attach.vllm_settings import attachment_settings
from kvtrail_agent.errors import AgentError
from kvtrail_agent.importers.decoded import HERE, Decoded, Part
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.lmcache_bus import LmcacheBus
from kvtrail_agent.importers.user_key import user_key, user_key_file
from kvtrail_agent.settings import AgentSettings

LOG: Final = logging.getLogger("kvtrail")
_BUS: Final = "lmcache.v1.mp_observability.event_bus"
_EVENT: Final = "lmcache.v1.mp_observability.event"
_HELD: Final = 100_000
_JOIN_S: Final = 10.0


class Listener:
    """Takes events from the bus's thread into a bounded queue and decodes them on `kvtrail-lmcache`; never raises into the bus.

    An event that finds the queue full is dropped and counted, and said once there is room.
    """

    def __init__(self, rows: LiveRows, key: bytes, clock: Clock) -> None:
        self._rows = rows
        self._decoder = LmcacheBus(Source(key, clock.wall_ns() >> 10))
        self._clock = clock
        self._events: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.guard = Guard("LMCache bus")
        self.dropped = 0
        """Events that found no room; counted on the bus's thread alone."""
        self._told_drops = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvtrail-lmcache", daemon=True)
        self._thread.start()

    def take(self, event: Any) -> None:
        """One event of the bus. Runs on the bus's thread; a microsecond, no lock held while anything blocks."""
        if self._events.qsize() >= _HELD:
            self.dropped += 1
            return
        self._events.put(event)

    def subscribe(self, bus: Any) -> None:
        """Ask a bus for all of its events. An event type that a newer version adds is asked for as well."""
        for event_type in import_module(_EVENT).EventType:
            bus.subscribe(event_type, self.take)
        # Since 0.5 a bus says when it dropped events itself, its queue being full.
        if hasattr(bus, "subscribe_drops") and hasattr(bus, "dropped_events_count"):
            bus.subscribe_drops(lambda: self.guard.run(self._bus_dropped, bus))

    def close(self) -> None:
        """Decode what is there, then end; waits for a bounded time."""
        self._stop.set()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        """Decode until told to stop and nothing is left."""
        while True:
            try:
                event = self._events.get(timeout=0.1)
            except queue.Empty:
                if self._stop.is_set():
                    break
                continue
            self.guard.run(self._decode, event)
        self._rows.close()

    def _decode(self, event: Any) -> None:
        """One event into its recorder."""
        name = getattr(event.event_type, "value", event.event_type)
        told = {"event_type": name, "timestamp": event.timestamp, "metadata": event.metadata, "session_id": event.session_id}
        self._rows.write(self._decoder.decode(told))
        if self.dropped > self._told_drops:
            self._say_dropped(self.dropped)

    def _bus_dropped(self, bus: Any) -> None:
        """The bus dropped events. Runs on its thread: the count goes the way of an event."""
        told = {"count": int(bus.dropped_events_count())}
        self.take(SimpleNamespace(event_type="mp.event_bus.dropped", timestamp=time.time(), metadata=told, session_id=""))

    def _say_dropped(self, dropped: int) -> None:
        """What was dropped is a row of the stream."""
        from kvtrail_schema.events import Error  # noqa: PLC0415 - rare

        part = Part(HERE)
        text = f"{dropped - self._told_drops} events of the bus found no room in the listener"
        part.add(Error(t_ns=self._clock.monotonic_ns(), reason=ErrorReason.INTERNAL, text=text))
        self._told_drops = dropped
        self._rows.write(Decoded(parts=[part]))


def listen(bus: Any, settings: AgentSettings, key_file: Path | None = None, *, clock: Clock | None = None) -> Listener:
    """Listen to a bus of this process.

    Raises:
        AgentError: a setting is impossible, or the key cannot be read. Nothing listens then.
    """
    used = clock or SystemClock()
    rows = LiveRows(recorders(settings), "lmcache-bus", FORMATS["lmcache-bus"].missing, used)
    listener = Listener(rows, user_key(key_file or user_key_file()), used)
    listener.subscribe(bus)
    return listener


def listen_to_every_bus(start: Callable[[Any], object]) -> None:
    """From now on each bus that LMCache makes in this process is given to `start`; what that raises stays with us."""
    module: Any = import_module(_BUS)
    made = module.init_event_bus

    def init_event_bus(*args: Any, **named: Any) -> Any:
        bus = made(*args, **named)
        try:
            start(bus)
        except (AgentError, AttributeError, ImportError, TypeError) as error:
            LOG.warning("kvtrail: this LMCache is not listened to: %s", error)
        return bus

    module.init_event_bus = init_event_bus


def main() -> None:
    """`lmcache` with the listener in it: arguments are LMCache's own."""
    attachment = attachment_settings({}, 0)
    if attachment is None:
        LOG.warning("kvtrail: KVTRAIL_ENGINE and KVTRAIL_TRANSPORT are not set: LMCache runs without a listener")
    else:
        settings, key_file = attachment.agent, attachment.key_file
        listen_to_every_bus(lambda bus: listen(bus, settings, key_file))
    sys.argv[0] = "lmcache"
    import_module("lmcache.cli.main").main()


if __name__ == "__main__":
    main()
