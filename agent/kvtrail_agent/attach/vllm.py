"""vLLM's KV connector that records: put around any other connector, or around none. Loaded by `kv_connector_module_path`.

```
--kv-transfer-config '{"kv_connector": "KvtrailConnector", "kv_connector_module_path": "kvtrail_agent.attach.vllm",
    "kv_role": "kv_both", "kv_connector_extra_config": {
        "kvtrail": {"engine": "chat-1", "transport": "http://127.0.0.1:4750"},
        "inner": {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {"cpu_bytes_to_use": 8589934592}}}}'
```

Every call goes to the inner connector unchanged, and what it answers goes to vLLM unchanged. What we do beside it never
blocks and never raises (`guard.py`). Only vLLM's processes can import this module.
"""

import time
from collections.abc import Callable
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1 import base as interface

from kvtrail_agent.attach.vllm_attach import Attached, attach, wall_offset_ns
from kvtrail_agent.attach.vllm_forward import forwarding_base
from kvtrail_agent.attach.vllm_inner import NothingInside, class_for, extra_of, make_inner
from kvtrail_agent.attach.vllm_settings import tier_of_sources
from kvtrail_agent.attach.vllm_worker import StepTimes, TimesMeta, WorkerWatch

_BASE: Any = forwarding_base(interface.KVConnectorBase_V1, class_for)


class KvtrailConnector(_BASE, interface.SupportsHMA):  # type: ignore[misc] # vLLM is not there where types are checked
    """A connector that passes everything on and records what it sees: one in the scheduler's process, and one a worker.

    The scheduler's has the recorder; a worker's takes times, which come back with vLLM's own metadata of workers.
    """

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        self._inner = make_inner(vllm_config, role, kv_cache_config)
        self._kvtrail: Attached | None = None
        self._times: WorkerWatch | None = None
        is_scheduler = getattr(role, "name", "") == "SCHEDULER"
        if is_scheduler:
            told = extra_of(vllm_config).get("kvtrail") or {}
            self._kvtrail = attach(vllm_config, kv_cache_config, type(self._inner), dict(told))
        elif not isinstance(self._inner, NothingInside):
            self._times = WorkerWatch(int(getattr(vllm_config.parallel_config, "rank", 0) or 0))

    # --- the scheduler's side

    def on_new_request(self, request: Any) -> Any:
        """A request came."""
        if (ours := self._kvtrail) is not None:
            ours.guard.run(lambda: ours.watch.came(request, time.monotonic_ns()))
        return self._inner.on_new_request(request)

    def bind_gpu_block_pool(self, gpu_block_pool: Any) -> Any:
        """The pool of blocks is there."""
        result = self._inner.bind_gpu_block_pool(gpu_block_pool)
        if (ours := self._kvtrail) is not None:
            ours.guard.run(ours.bind, gpu_block_pool)
        return result

    def bind_kv_cache_manager(self, kv_cache_manager: Any) -> Any:
        """The manager of the cache is there, and with it the pool."""
        result = self._inner.bind_kv_cache_manager(kv_cache_manager)
        if (ours := self._kvtrail) is not None:
            ours.guard.run(lambda: ours.bind(kv_cache_manager.block_pool))
        return result

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int, *args: Any, **kwargs: Any) -> Any:
        """A request is looked up."""
        begin_ns = time.monotonic_ns()
        result = self._inner.get_num_new_matched_tokens(request, num_computed_tokens, *args, **kwargs)
        if (ours := self._kvtrail) is not None:
            span = (begin_ns, time.monotonic_ns())
            ours.guard.run(lambda: ours.watch.looked_up(request, num_computed_tokens, result[0], bool(result[1]), span))
        return result

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int, *args: Any, **kwargs: Any) -> Any:
        """A request was given its blocks."""
        now_ns = time.monotonic_ns()
        result = self._inner.update_state_after_alloc(request, blocks, num_external_tokens, *args, **kwargs)
        if (ours := self._kvtrail) is not None:
            ours.guard.run(self._given, ours, request, blocks, num_external_tokens, now_ns)
        return result

    def _given(self, ours: Attached, request: Any, blocks: Any, external: int, now_ns: int) -> None:
        """As above, with what the inner connector says of where it found them."""
        tier, slots = ours.tier, []
        sources: dict[Any, int] = {}
        if external:
            slots = [int(slot) for slot in blocks.get_block_ids()[0]]
            if (split := getattr(self._inner, "get_external_cache_hit_sources", None)) is not None:  # since vLLM 0.32
                ours.guard.run(lambda: sources.update(split(request, external)))
            tier = tier_of_sources(sources, tier)
        ours.watch.given(request, slots, external, tier, now_ns)

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """A step was decided on."""
        result = self._inner.build_connector_meta(scheduler_output)
        if (ours := self._kvtrail) is not None:
            ours.guard.run(lambda: ours.watch.built(scheduler_output, time.monotonic_ns()))
        return result

    def update_connector_output(self, connector_output: Any) -> Any:
        """Workers answered. The inner connector sees its own metadata, without ours around it."""
        times = self._unwrapped(connector_output)
        result = self._inner.update_connector_output(connector_output)
        if (ours := self._kvtrail) is not None:
            now_ns, offset_ns = time.monotonic_ns(), wall_offset_ns()
            ours.guard.run(lambda: ours.watch.worker_said(connector_output, times, offset_ns, now_ns))
        return result

    @staticmethod
    def _unwrapped(connector_output: Any) -> tuple[StepTimes, ...]:
        """Take our times out of what workers sent."""
        meta = getattr(connector_output, "kv_connector_worker_meta", None)
        if not isinstance(meta, TimesMeta):
            return ()
        connector_output.kv_connector_worker_meta = meta.inner
        return meta.times

    def take_events(self) -> Any:
        """A step's results are taken; vLLM asks this last."""
        result = self._inner.take_events()
        if (ours := self._kvtrail) is not None:
            now_ns = time.monotonic_ns()
            ours.guard.run(lambda: ours.watch.done(now_ns))
            ours.guard.run(ours.sample, now_ns)
        return result

    def request_finished(self, request: Any, block_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """A request ended, in a vLLM that knows one kind of cache."""
        result = self._inner.request_finished(request, block_ids, *args, **kwargs)
        return self._finished(request, result, lambda: len(block_ids))

    def request_finished_all_groups(self, request: Any, block_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """A request ended. An inner connector that knows one kind of cache is told of that one."""
        if isinstance(self._inner, interface.SupportsHMA):
            result = self._inner.request_finished_all_groups(request, block_ids, *args, **kwargs)
        else:
            result = self._inner.request_finished(request, block_ids[0])
        return self._finished(request, result, lambda: sum(len(ids) for ids in block_ids))

    def _finished(self, request: Any, result: Any, slots: Callable[[], int]) -> Any:
        """As above; `result` goes on as it is."""
        if (ours := self._kvtrail) is not None:
            ours.guard.run(lambda: ours.watch.finished(request, slots(), time.monotonic_ns(), keeps_blocks=bool(result[0])))
        return result

    def shutdown(self) -> Any:
        """The process ends."""
        result = self._inner.shutdown()
        if self._kvtrail is not None:
            self._kvtrail.close()
        return result

    # --- a worker's side

    def start_load_kv(self, *args: Any, **kwargs: Any) -> Any:
        """Loads start."""
        call = self._inner.start_load_kv
        return call(*args, **kwargs) if self._times is None else self._times.load(call, *args, **kwargs)

    def wait_for_layer_load(self, *args: Any, **kwargs: Any) -> Any:
        """A layer needs what it loads."""
        call = self._inner.wait_for_layer_load
        return call(*args, **kwargs) if self._times is None else self._times.layer(call, *args, **kwargs)

    def save_kv_layer(self, *args: Any, **kwargs: Any) -> Any:
        """A layer is saved."""
        call = self._inner.save_kv_layer
        return call(*args, **kwargs) if self._times is None else self._times.save(call, *args, **kwargs)

    def wait_for_save(self, *args: Any, **kwargs: Any) -> Any:
        """Saving is waited for."""
        call = self._inner.wait_for_save
        return call(*args, **kwargs) if self._times is None else self._times.save(call, *args, **kwargs)

    def get_transfer_results(self, *args: Any, **kwargs: Any) -> Any:
        """Transfers that ended are asked for."""
        if self._times is not None:
            self._times.asked()
        return self._inner.get_transfer_results(*args, **kwargs)

    def get_finished(self, *args: Any, **kwargs: Any) -> Any:
        """The same, in earlier versions."""
        if self._times is not None:
            self._times.asked()
        return self._inner.get_finished(*args, **kwargs)

    def build_connector_worker_meta(self) -> Any:
        """What a worker tells the scheduler in this step, with our times around it."""
        meta = self._inner.build_connector_worker_meta()
        return meta if self._times is None else TimesMeta(meta, (self._times.take(),))
