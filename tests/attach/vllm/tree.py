"""vLLM's modules that a connector needs, with the interface of version 0.32 as it is documented, and nothing behind it.

For tests of the wrapper where no vLLM is installed. `tests/engines` runs the same wrapper in a real one.
"""

import enum
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

CONNECTORS: dict[str, type] = {}
"""The connectors that the factory knows."""


class KVConnectorRole(enum.Enum):
    """Where a connector lives."""

    SCHEDULER = 0
    WORKER = 1


class CacheHitSource(enum.Enum):
    """Where hits came from."""

    DISK = "disk"
    EXTERNAL_UNSPECIFIED = "external_unspecified"


class SupportsHMA:
    """Marks connectors that know several kinds of cache."""


class KVConnectorMetadata:
    """What a scheduler's connector tells the workers'."""


@dataclass
class KVTransferConfig:
    """The configuration of a connector."""

    kv_connector: str | None = None
    kv_role: str | None = None
    kv_connector_module_path: str | None = None
    kv_connector_extra_config: dict[str, Any] = field(default_factory=dict)
    engine_id: str = "engine"


class KVConnectorBase_V1:  # noqa: N801 - vLLM's name
    """The interface: methods, a property, class methods."""

    _cache_hit_source = CacheHitSource.EXTERNAL_UNSPECIFIED

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self._vllm_config, self._role, self.metadata = vllm_config, role, None

    @property
    def requires_kv_delivery(self) -> bool:
        """Whether transfers must not be lost."""
        return True

    def on_new_request(self, request: Any) -> Any:
        """A request came."""

    def bind_kv_cache_manager(self, manager: Any) -> Any:
        """The manager is there."""

    def bind_gpu_block_pool(self, pool: Any) -> Any:
        """The pool is there."""

    def get_num_new_matched_tokens(self, request: Any, computed: int) -> Any:
        """Look a request up."""
        return 0, False

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> Any:
        """Blocks were given."""

    def get_external_cache_hit_sources(self, request: Any, external: int) -> dict[Any, int]:
        """Where hits came from."""
        return {self._cache_hit_source: external}

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """A step was decided on."""
        return KVConnectorMetadata()

    def update_connector_output(self, connector_output: Any) -> Any:
        """Workers answered."""

    def take_events(self) -> Any:
        """Events of the connector."""
        return ()

    def request_finished(self, request: Any, block_ids: Any) -> Any:
        """A request ended."""
        return False, None

    def start_load_kv(self, context: Any) -> Any:
        """Loads start."""

    def wait_for_layer_load(self, layer: str) -> Any:
        """A layer needs its load."""

    def save_kv_layer(self, layer: str, kv: Any, attention: Any) -> Any:
        """A layer is saved."""

    def wait_for_save(self) -> Any:
        """Saving is waited for."""

    def get_finished(self, finished: Any) -> Any:
        """Transfers that ended."""
        return None, None

    def get_transfer_results(self, finished: Any) -> Any:
        """Transfers that ended."""
        return self.get_finished(finished)

    def build_connector_worker_meta(self) -> Any:
        """What a worker tells the scheduler."""

    def get_kv_connector_stats(self) -> Any:
        """Statistics."""

    def reset_cache(self) -> Any:
        """Empty it."""

    def shutdown(self) -> Any:
        """The process ends."""

    @classmethod
    def build_prom_metrics(cls, vllm_config: Any, *rest: Any) -> Any:
        """Metrics of this connector."""

    @classmethod
    def build_kv_connector_stats(cls, data: Any = None) -> Any:
        """Statistics from their wire form."""

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: dict[str, Any]) -> bool:
        """Whether graphs are cut."""
        return bool(extra_config.get("cut"))


class KVConnectorFactory:
    """Finds connectors by name."""

    @classmethod
    def get_connector_class(cls, config: KVTransferConfig) -> type:
        """The class of a configuration."""
        if config.kv_connector not in CONNECTORS:
            raise ValueError(f"Unsupported connector type: {config.kv_connector}")
        return CONNECTORS[config.kv_connector]


def modules() -> dict[str, ModuleType]:
    """The modules by name, as `sys.modules` has them."""
    base = "vllm.distributed.kv_transfer.kv_connector"
    names = [
        "vllm",
        "vllm.config",
        "vllm.distributed",
        "vllm.distributed.kv_transfer",
        base,
        f"{base}.factory",
        f"{base}.v1",
        f"{base}.v1.base",
    ]
    found = {name: ModuleType(name) for name in names}
    found["vllm"].__dict__["__version__"] = "0.32.0"
    found["vllm.config"].__dict__["KVTransferConfig"] = KVTransferConfig
    found[f"{base}.factory"].__dict__["KVConnectorFactory"] = KVConnectorFactory
    for member in (KVConnectorBase_V1, SupportsHMA, KVConnectorMetadata, KVConnectorRole):
        found[f"{base}.v1.base"].__dict__[member.__name__] = member
    found[f"{base}.v1"].__dict__["base"] = found[f"{base}.v1.base"]
    return found


def ours() -> list[str]:
    """Our modules that import vLLM, as far as they are loaded."""
    return [name for name in sys.modules if name in {"kvtrail_agent.attach.vllm", "kvtrail_agent.attach.vllm_inner"}]
