"""The connector inside ours: found by the configuration as vLLM itself would find it, or one that does nothing.

Imports vLLM, so only an engine's process can load it. The inner connector sees a configuration in which it is the only one.
"""

import copy
import dataclasses
from typing import Any, Final

from vllm.config import KVTransferConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1 import base as interface

INNER: Final = "inner"
"""The key of our `kv_connector_extra_config` under which the inner connector's own configuration lies."""
_BASE: Any = interface.KVConnectorBase_V1
_METADATA: Any = interface.KVConnectorMetadata


class NothingInside(_BASE, interface.SupportsHMA):  # type: ignore[misc] # vLLM is not there where types are checked
    """The inner connector where none is named: finds nothing, moves nothing."""

    @property
    def requires_kv_delivery(self) -> bool:
        """There is nothing to hand over."""
        return False

    def start_load_kv(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to load."""

    def wait_for_layer_load(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to wait for."""

    def save_kv_layer(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to save."""

    def wait_for_save(self) -> None:
        """Nothing to wait for."""

    def get_num_new_matched_tokens(self, *args: Any, **kwargs: Any) -> tuple[int, bool]:
        """Nothing is found."""
        return 0, False

    def update_state_after_alloc(self, *args: Any, **kwargs: Any) -> None:
        """Nothing depends on it."""

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """Nothing to tell the worker."""
        return _METADATA()

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        """Blocks are free at once."""
        return False, None

    def request_finished_all_groups(self, request: Any, block_ids: tuple[list[int], ...]) -> tuple[bool, None]:
        """Blocks are free at once."""
        return False, None


_last_inner: dict[str, type] = {}
"""The inner class of this process, for class methods that are called without a configuration; written by whoever has one."""


def extra_of(vllm_config: Any) -> dict[str, Any]:
    """Our own part of the configuration."""
    return dict(vllm_config.kv_transfer_config.kv_connector_extra_config or {})


def inner_config(vllm_config: Any) -> Any:
    """The configuration as the inner connector sees it; the same one where there is no inner connector."""
    named = extra_of(vllm_config).get(INNER)
    if not named:
        return vllm_config
    seen = copy.copy(vllm_config)
    fields = {"kv_connector_module_path": None, "kv_connector_extra_config": {}, **named}
    seen.kv_transfer_config = dataclasses.replace(vllm_config.kv_transfer_config, **fields)
    return seen


def inner_class(vllm_config: Any) -> type:
    """The class of the inner connector. Raises what vLLM raises for a name that it does not know."""
    named = bool(extra_of(vllm_config).get(INNER))
    found: type = (
        KVConnectorFactory.get_connector_class(inner_config(vllm_config).kv_transfer_config) if named else NothingInside
    )
    _last_inner["class"] = found
    return found


def class_for(args: tuple[Any, ...]) -> tuple[type | None, tuple[Any, ...]]:
    """The inner class for a class method's arguments, and those arguments as it is to see them."""
    first = args[0] if args else None
    if getattr(first, "kv_transfer_config", None) is not None:
        return inner_class(first), (inner_config(first), *args[1:])
    if isinstance(first, dict) and isinstance(named := first.get(INNER), dict) and named.get("kv_connector"):
        found: type = KVConnectorFactory.get_connector_class(KVTransferConfig(**{"kv_role": "kv_both", **named}))
        _last_inner["class"] = found
        return found, (named.get("kv_connector_extra_config") or {}, *args[1:])
    return _last_inner.get("class"), args


def make_inner(vllm_config: Any, role: Any, kv_cache_config: Any) -> Any:
    """The inner connector itself.

    Raises:
        ValueError: it cannot serve a model with several kinds of cache, as vLLM itself refuses it then.
    """
    found = inner_class(vllm_config)
    if not issubclass(found, interface.SupportsHMA) and len(kv_cache_config.kv_cache_groups) > 1:
        message = f"Connector {found.__name__} does not support HMA but HMA is enabled: set --disable-hybrid-kv-cache-manager"
        raise ValueError(message)
    make: Any = found
    return make(inner_config(vllm_config), role, kv_cache_config)
