"""Wraps a KV cache connector of TensorRT-LLM, so that its loads and saves are recorded with the requests that they are for.

```python
kv_connector_config = KvCacheConnectorConfig(
    connector_module="kvtrail_agent.attach.trtllm_connector",
    connector_scheduler_class="Scheduler",
    connector_worker_class="Worker",
)
```

with `KVTRAIL_INNER_CONNECTOR=module:SchedulerClass:WorkerClass` beside the agent's own variables (`KVTRAIL_ENGINE`,
`KVTRAIL_TRANSPORT`, `KVTRAIL_KEY_FILE`). The classes made here inherit from the inner ones: what is not watched is
the inner's own.
"""

import os
import time
from importlib import import_module
from typing import Any, Final

from kvtrail_agent.attach.trtllm_watch import SchedulerWatch, WorkerWatch, scheduler_watch, worker_watch
from kvtrail_agent.errors import SettingsInvalid

INNER: Final = "KVTRAIL_INNER_CONNECTOR"
_PARTS: Final = 3


def watched_scheduler(inner: type[Any], watch: SchedulerWatch | None = None) -> type[Any]:
    """A scheduler's class that is the inner one, and tells a watch. Each of our steps is guarded: none reaches the engine."""

    class Scheduler(inner):  # type: ignore[misc]  # whatever class the operator names
        """The inner scheduler, watched."""

        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self._kvtrail = watch or scheduler_watch(inner.__name__)

        def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any:
            """How many tokens the connector has: asked once a request."""
            began_ns = time.monotonic_ns()
            answer = super().get_num_new_matched_tokens(request, num_computed_tokens)
            self._kvtrail.matched(request, num_computed_tokens, answer, began_ns)
            return answer

        def update_state_after_alloc(self, request: Any, block_ids: Any) -> Any:
            """Blocks are there for what will be loaded."""
            answer = super().update_state_after_alloc(request, block_ids)
            self._kvtrail.allocated(request, block_ids)
            return answer

        def request_finished(self, request: Any, cache_block_ids: Any) -> Any:
            """A request ended; True: its blocks are still being saved."""
            answer = super().request_finished(request, cache_block_ids)
            self._kvtrail.finished(request, cache_block_ids, answer)
            return answer

    return Scheduler


def watched_worker(inner: type[Any], watch: WorkerWatch | None = None) -> type[Any]:
    """A worker's class that is the inner one, and tells a watch."""

    class Worker(inner):  # type: ignore[misc]  # as above
        """The inner worker, watched."""

        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self._kvtrail = watch or worker_watch(inner.__name__)

        def start_load_kv(self, *args: Any, **named: Any) -> Any:
            """The loads of a step begin."""
            return self._kvtrail.timed("start_load", super().start_load_kv, *args, **named)

        def wait_for_layer_load(self, *args: Any, **named: Any) -> Any:
            """The step waits until a layer is there."""
            return self._kvtrail.timed("wait_for_load", super().wait_for_layer_load, *args, **named)

        def save_kv_layer(self, *args: Any, **named: Any) -> Any:
            """A layer is saved."""
            return self._kvtrail.timed("save_layer", super().save_kv_layer, *args, **named)

        def wait_for_save(self, *args: Any, **named: Any) -> Any:
            """The step waits until its layers are saved."""
            return self._kvtrail.timed("wait_for_save", super().wait_for_save, *args, **named)

        def get_finished(self, finished_gen_req_ids: Any, started_loading_req_ids: Any) -> Any:
            """Which requests are saved, and which are loaded."""
            answer = super().get_finished(finished_gen_req_ids, started_loading_req_ids)
            self._kvtrail.reported(finished_gen_req_ids, started_loading_req_ids, answer)
            return answer

    return Worker


def inner_classes() -> tuple[type[Any], type[Any]]:
    """The classes that the environment names.

    Raises:
        SettingsInvalid: it names none, or not in the form `module:SchedulerClass:WorkerClass`.
    """
    parts = os.environ.get(INNER, "").split(":")
    if len(parts) != _PARTS:
        raise SettingsInvalid(f"{INNER} must be module:SchedulerClass:WorkerClass, the connector that is to be watched")
    module = import_module(parts[0])
    return getattr(module, parts[1]), getattr(module, parts[2])


def __getattr__(name: str) -> type[Any]:
    """`Scheduler` and `Worker`, made of the inner classes when the engine asks for them."""
    if name == "Scheduler":
        return watched_scheduler(inner_classes()[0])
    if name == "Worker":
        return watched_worker(inner_classes()[1])
    raise AttributeError(name)
