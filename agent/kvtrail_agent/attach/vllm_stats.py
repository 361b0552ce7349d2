"""vLLM's stat logger that records, in the process of its API server; found through the entry point `vllm.stat_logger_plugins`.

Does nothing unless KVTRAIL_TRANSPORT and KVTRAIL_ENGINE are set. Where our connector is configured it tells counters alone:
the connector tells requests. Only vLLM's processes can import this module.
"""

import json
import logging
import time
from typing import Any, Final

from vllm.v1.metrics import loggers

from kvtrail_agent.attach.guard import Guard
from kvtrail_agent.attach.vllm_front import FrontWatch
from kvtrail_agent.attach.vllm_settings import attachment_settings
from kvtrail_agent.errors import AgentError
from kvtrail_agent.fleet_key import fleet_key
from kvtrail_agent.recorder import Recorder

LOG: Final = logging.getLogger("kvtrail")
FRONT_RANK: Final = 1_000
"""Ranks of API servers begin here, out of the way of those of engines."""
COVERAGE: Final = (
    "requests are told when they have ended: one that never does is not seen",
    "between scheduling and first token all is prefill: loads within a step, preemptions and other requests are not told apart",
    "no blocks, look-ups and transfers",
)
_BASE: Any = loggers.StatLoggerBase


class KvtrailStatLogger(_BASE):  # type: ignore[misc] # vLLM is not there where types are checked
    """One for each engine behind an API server. Never raises into it, never waits."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        self._guard = Guard("vLLM stat logger")
        self._recorder: Recorder | None = None
        self._watch: FrontWatch | None = None
        self._guard.run(self._open, vllm_config, engine_index)

    def _open(self, vllm_config: Any, engine_index: int) -> None:
        """Start a recorder, where the environment says where to."""
        transfer = getattr(vllm_config, "kv_transfer_config", None)
        has_connector = getattr(transfer, "kv_connector", None) == "KvtrailConnector"
        try:
            settings = attachment_settings({}, FRONT_RANK + engine_index)
            if settings is None:
                return
            key = fleet_key(settings.key_file)
            self._recorder = Recorder.start(settings.agent)
        except (AgentError, OSError) as error:
            LOG.warning("kvtrail: nothing is recorded of the API server: %s", error)
            return
        facts = {"engine": "vllm", "source": "stat logger", "coverage": list(COVERAGE)}
        self._recorder.manifest_declared(json.dumps(facts))
        self._watch = FrontWatch(self._recorder, key, tells_requests=not has_connector)

    def record(self, scheduler_stats: Any, iteration_stats: Any, *args: Any, **kwargs: Any) -> None:
        """Take over statistics of a step."""
        if self._watch is not None:
            self._guard.run(self._watch.record, scheduler_stats, iteration_stats, time.monotonic_ns())

    def log_engine_initialized(self) -> None:
        """The engine is up; nothing follows from it."""
