"""Attach to a TensorRT-LLM engine in this process: one line beside the `LLM` object.

```python
from kvtrail_agent.attach.trtllm import watch

watching = watch(llm, AgentSettings(engine="chat-1", transport="http://127.0.0.1:4750"))
...
watching.close()
```
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from kvtrail_schema.clock import Clock, SystemClock
from kvtrail_schema.identity import Rank

from kvtrail_agent.attach.live_rows import LiveRows
from kvtrail_agent.attach.trtllm_poller import TrtllmPoller
from kvtrail_agent.attach.trtllm_sources import TrtllmCalls
from kvtrail_agent.importers.decoded import Origin
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.user_key import user_key, user_key_file
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings

_JOIN_S: Final = 10.0


class Watching:
    """A poller on a thread of its own, `kvtrail-trtllm`; `close` ends it."""

    def __init__(self, poller: TrtllmPoller) -> None:
        self.poller = poller
        self._stop = threading.Event()
        self._thread = threading.Thread(target=poller.run, args=(self._stop,), name="kvtrail-trtllm", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = _JOIN_S) -> None:
        """End the poller and its recorders; waits for a bounded time, and leaves the rest to the shippers."""
        self._stop.set()
        self._thread.join(timeout_s)


def watch(llm: Any, settings: AgentSettings, key_file: Path | None = None, *, clock: Clock | None = None) -> Watching:
    """Follow an `LLM` by its Python calls. Its thread waits for the engine, the engine never for it.

    Raises:
        AgentError: a setting is impossible, or the key cannot be read. Nothing runs then.
    """
    used = clock or SystemClock()
    rows = LiveRows(recorders(settings), "tensorrt-llm", FORMATS["trtllm"].missing, used)
    return Watching(TrtllmPoller(TrtllmCalls(llm), rows, key=user_key(key_file or user_key_file()), clock=used))


def recorders(settings: AgentSettings) -> Callable[[Origin], Recorder]:
    """Starts a recorder for an origin: its own name where it has one, behind the operator's."""

    def start(origin: Origin) -> Recorder:
        engine = f"{settings.engine}/{origin.engine}" if origin.engine else settings.engine
        return Recorder.start(msgspec.structs.replace(settings, engine=engine[:200], rank=Rank(origin.rank)))

    return start
