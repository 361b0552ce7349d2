"""Runs in the engines' environment: LMCache's storage manager on a CPU, its bus listened to, its cache events sent twice.

They go by HTTP and to Kafka. Stores chunks, empties the host tier, loads them again from the file system. Answers with what
LMCache itself counts.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from kvtrail_agent.attach.lmcache import Listener, listen, listen_to_every_bus
from kvtrail_agent.settings import AgentSettings
from lmcache.v1.distributed import config as configs
from lmcache.v1.distributed.api import GroupedObjectKeys, MemoryLayoutDesc, ObjectKey, PrefetchTaskSpec
from lmcache.v1.distributed.l2_adapters.config import L2AdaptersConfig
from lmcache.v1.distributed.l2_adapters.fs_l2_adapter import FSL2AdapterConfig
from lmcache.v1.distributed.storage_manager import StorageManager
from lmcache.v1.mp_coordinator.cache_events import CacheEventSubscriber, HttpCacheEventSink, KafkaCacheEventSink
from lmcache.v1.mp_observability import event_bus
from lmcache.v1.mp_observability.event import EventType
from lmcache.v1.multiprocess.config import KafkaCacheEventSinkConfig

LAYOUT = MemoryLayoutDesc([torch.Size([16, 1024])], [torch.float16])


def storage(folder: Path) -> StorageManager:
    """A storage manager with 64 MiB of host memory and a folder behind it."""
    memory = configs.L1MemoryManagerConfig(size_in_bytes=64 << 20, use_lazy=False, shm_name="")
    return StorageManager(
        configs.StorageManagerConfig(
            l1_manager_config=configs.L1ManagerConfig(memory_config=memory),
            eviction_config=configs.EvictionConfig(eviction_policy="LRU"),
            l2_adapter_config=L2AdaptersConfig([FSL2AdapterConfig(str(folder))]),
        )
    )


def load_again(manager: StorageManager, keys: list[Any]) -> bool:
    """Load keys from L2, and say whether all came."""
    handle = manager.submit_prefetch_task(PrefetchTaskSpec(key_groups=[GroupedObjectKeys(keys, 0, LAYOUT)]), "req-1")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = manager.query_prefetch_status(handle)
        if found is not None:
            return True
        time.sleep(0.02)
    return False


def main(spec: dict[str, Any]) -> dict[str, Any]:
    """The run."""
    own: Counter[str] = Counter()
    listeners: list[Listener] = []
    told: dict[str, Any] = {name: Path(value) if name.endswith("_dir") else value for name, value in spec["agent"].items()}
    settings = AgentSettings(**told)
    listen_to_every_bus(lambda made: listeners.append(listen(made, settings, Path(spec["key_file"]))))
    bus = event_bus.init_event_bus(event_bus.EventBusConfig())
    for event_type in EventType:
        bus.subscribe(event_type, lambda event: own.update([event.event_type.value]))
    sinks = [HttpCacheEventSink(spec["coordinator"]), KafkaCacheEventSink(KafkaCacheEventSinkConfig(**spec["kafka"]))]
    for sink in sinks:
        bus.register_subscriber(CacheEventSubscriber(sink, "lm-a", int(time.time()), flush_interval=0.1))
    bus.start()
    manager = storage(Path(spec["folder"]))
    manager.publish_capacity()
    keys = [ObjectKey(bytes([number]) * 16, "m", 1, cache_salt="tenant-secret") for number in range(spec["chunks"])]
    manager.finish_write(list(manager.reserve_write(keys, LAYOUT)))
    until = time.monotonic() + 30
    while not own["l2.store.completed"] and time.monotonic() < until:
        time.sleep(0.05)
    manager.clear(force=True)
    came = load_again(manager, keys)
    time.sleep(1)
    manager.close()
    bus.stop()
    listeners[0].close()
    return {"own": own, "came": came, "errors": listeners[0].guard.errors, "dropped": listeners[0].dropped}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
