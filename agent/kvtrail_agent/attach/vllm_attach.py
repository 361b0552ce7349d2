"""Puts the scheduler's side together: recorder, names, and what watches requests, blocks and loads."""

import json
import logging
import time
from typing import Any, Final

from kvtrail_schema.enums import Tier

from kvtrail_agent.attach.guard import Guard
from kvtrail_agent.attach.vllm_chain import Chains
from kvtrail_agent.attach.vllm_loads import Loads
from kvtrail_agent.attach.vllm_names import Names
from kvtrail_agent.attach.vllm_pool import Residents, watch_pool
from kvtrail_agent.attach.vllm_queue import Queue
from kvtrail_agent.attach.vllm_scheduler import SchedulerWatch
from kvtrail_agent.attach.vllm_settings import SAVES_AT_ONCE, Attachment, attachment_settings, tier_of_connector
from kvtrail_agent.errors import AgentError
from kvtrail_agent.fleet_key import fleet_key
from kvtrail_agent.recorder import Recorder

LOG: Final = logging.getLogger("kvtrail")
_SAMPLE_NS: Final = 1_000_000_000
COVERAGE: Final = (
    "arrival is when the scheduler takes a request; tokenizing and the way to the engine's process lie before it",
    "io of a load is the inner connector's whole time for it, its own queue among it",
    "loads and saves of several workers stand once, with the slowest worker's times",
    "copies outside the GPU, and why the inner connector drops them, are not told",
)
"""What vLLM does not tell a connector; stands in the manifest of every stream."""


class Attached:
    """One scheduler's recorder and watch; used by the scheduler's thread, but for `close`."""

    def __init__(self, recorder: Recorder, settings: Attachment, sizes: "Sizes", inner: type) -> None:
        self.recorder = recorder
        self.guard = Guard("vLLM connector")
        self.tier = tier_of_connector(inner, settings.tier)
        self.residents = Residents(recorder, settings.agent.rank, sizes.bytes_a_block)
        names = Names(fleet_key(settings.key_file))
        chains = Chains(recorder, names, self.residents, sizes.block_tokens, sizes.hash_tokens)
        at_once = inner.__name__ in SAVES_AT_ONCE
        loads = Loads(recorder, self.residents, self.tier, sizes.bytes_a_block, saves_at_once=at_once)
        queue = Queue(recorder, sizes.most_running, sizes.most_tokens)
        self.watch = SchedulerWatch(recorder, names, chains, loads, queue)
        self._chains = chains
        self._sizes = sizes
        self._pool: Any = None
        self._sampled_ns = 0

    def declare(self, text: str) -> None:
        """What this engine is, and how much room its GPU tier has."""
        self.recorder.manifest_declared(text)
        self.recorder.tier_declared(Tier.GPU, self._sizes.bytes_a_block * self._sizes.blocks, "GPU")

    def bind(self, pool: Any) -> None:
        """The pool of blocks is handed over."""
        if self._pool is pool:
            return
        self._pool = pool
        watch_pool(pool, self.residents, self.guard, self._entered)

    def _entered(self, request: Any, blocks: list[Any], first: int, last: int, size: int) -> None:
        """Blocks of a request were entered in the prefix cache."""
        watched = self.watch.requests.get(request.request_id)
        if watched is not None and first < last:
            self._chains.entered(watched, blocks, first, last, size)

    def sample(self, now_ns: int) -> None:
        """Each second: how full the GPU tier is, and how often we failed."""
        if now_ns - self._sampled_ns < _SAMPLE_NS:
            return
        self._sampled_ns = now_ns
        if self.guard.errors:
            self.recorder.counter_sampled("kvtrail_attach_errors_total", float(self.guard.errors))
        if self._pool is not None:
            size, free = self._sizes.bytes_a_block, int(self._pool.get_num_free_blocks())
            total = self._sizes.blocks
            self.recorder.capacity_sampled(
                Tier.GPU,
                capacity_bytes=size * total,
                used_bytes=size * max(total - free, 0),
                free_bytes=size * free,
                depth=self.watch.waiting,
                in_flight=self.watch.loading,
            )

    def close(self) -> None:
        """The engine ends; waits a bounded time, the shipper does the rest."""
        self.guard.run(self.recorder.close)


class Sizes:
    """Sizes that vLLM chose, read once from its configuration; `bytes_a_block` is one worker's part of a block."""

    def __init__(self, vllm_config: Any, kv_cache_config: Any) -> None:
        group = kv_cache_config.kv_cache_groups[0].kv_cache_spec if kv_cache_config.kv_cache_groups else None
        self.blocks = max(int(kv_cache_config.num_blocks), 1)
        self.block_tokens = int(getattr(group, "block_size", None) or vllm_config.cache_config.block_size)
        hashed = getattr(kv_cache_config, "hash_block_size", None)
        self.hash_tokens = int(hashed or getattr(vllm_config.cache_config, "hash_block_size", None) or self.block_tokens)
        self.bytes_a_block = sum(int(tensor.size) for tensor in kv_cache_config.kv_cache_tensors) // self.blocks
        self.most_running = int(vllm_config.scheduler_config.max_num_seqs)
        self.most_tokens = int(vllm_config.scheduler_config.max_num_batched_tokens)


def attach(vllm_config: Any, kv_cache_config: Any, inner: type, extra: dict[str, Any]) -> Attached | None:
    """A recorder for the scheduler of one engine; None, with the reason in the log, where there can be none.

    Never raises: an engine starts without a recorder rather than not at all.
    """
    try:
        rank = int(getattr(vllm_config.parallel_config, "data_parallel_rank", 0) or 0)
        settings = attachment_settings(extra, rank)
        if settings is None:
            LOG.warning("kvtrail: no transport and engine named: nothing is recorded")
            return None
        sizes = Sizes(vllm_config, kv_cache_config)
        recorder = Recorder.start(settings.agent)
    except (AgentError, OSError) as error:
        LOG.warning("kvtrail: nothing is recorded: %s", error)
        return None
    except Exception as error:
        LOG.warning("kvtrail: nothing is recorded: this vLLM's configuration is not understood", exc_info=error)
        return None
    attached = Attached(recorder, settings, sizes, inner)
    attached.guard.run(lambda: attached.declare(manifest(vllm_config, sizes, inner, attached.tier)))
    return attached


def manifest(vllm_config: Any, sizes: Sizes, inner: type, tier: Tier) -> str:
    """The JSON of `manifest_declared`: what runs, without names and paths."""
    device = str(getattr(vllm_config.device_config, "device_type", ""))
    active = [*(["prefix_cache"] if vllm_config.cache_config.enable_prefix_caching else [])]
    if inner.__name__ != "NothingInside" and tier is not Tier.GPU:
        active.append(f"offload_{tier.name.lower()}")
    facts = {
        "engine": "vllm",
        "version": _version(),
        "device": "cuda" if device == "cuda" else "cpu-emulated",
        "inner_connector": inner.__name__,
        "block_tokens": sizes.block_tokens,
        "block_bytes": sizes.bytes_a_block,
        "max_num_seqs": sizes.most_running,
        "max_num_batched_tokens": sizes.most_tokens,
        "ranks": int(getattr(vllm_config.parallel_config, "data_parallel_size", 1) or 1),
        "active": active,
        "coverage": list(COVERAGE),
    }
    return json.dumps(facts)


def _version() -> str:
    """What vLLM says of its version."""
    import vllm  # noqa: PLC0415 - it is loaded already, or this is a test

    return str(getattr(vllm, "__version__", "unknown"))


def wall_offset_ns() -> int:
    """The wall clock minus the monotonic one, now."""
    return time.time_ns() - time.monotonic_ns()
