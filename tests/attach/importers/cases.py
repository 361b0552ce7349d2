"""A small sample of each import format, made from its documented shapes; and what it must become.

`sentinel` is one more good record, which must be read whatever is wrong with those before it.
"""

import base64
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from kvtrail_agent.importers.format import Source

from tests.attach.importers.payloads import KEY, TS, payload, removed, stored

SOURCE: Final = Source(KEY, 7)
SECRETS: Final = ("tenant-secret", "lora-secret", "model-secret", "object-secret", "424242")
"""What stands in the samples and may stand in no event: tenants, names, tokens."""


@dataclass(frozen=True, slots=True)
class Case:
    """One format: records as its reader gives them, and what they are read as."""

    format: str
    records: tuple[Any, ...]
    seen: dict[str, int]
    kinds: dict[str, int]
    sentinel: Any
    sequence: str = ""


def message(number: int, *events: object) -> dict[str, object]:
    """One message of a vLLM-like socket."""
    raw = payload(*events, ts=TS + number, rank=0)
    return {"topic": "kv@pod-0@model-secret", "seq": number, "payload_b64": base64.b64encode(raw).decode()}


VLLM: Final = Case(
    "vllm",
    (
        message(0, stored(1, 2, token_ids=[424242] * 8, extra_keys=[["tenant-secret"], None], lora_name=None)),
        message(1, removed(1), {"type": "AllBlocksCleared"}),
        {"frames_hex": ["6b76", (2).to_bytes(8, "big").hex(), payload(["BlockStored", [5], None, [0], 1, None]).hex()]},
        {"topic": "kv@pod-1@m", "seq": 0, "payload": [TS, [stored(9, lora_name="lora-secret")], 1]},
        {"topic": "kv@pod-1@m", "seq": 2, "ts": TS + 9, "events": [stored(10, parent=9)], "data_parallel_rank": 1},
    ),
    {"BlockStored": 4, "BlockRemoved": 1, "AllBlocksCleared": 1},
    {"block_created": 5, "evicted": 1, "tier_cleared": 1, "namespace_declared": 3, "events_dropped": 1},
    {"topic": "last", "seq": 0, "payload": [TS, [stored(4711)], 0]},
)

SGLANG: Final = Case(
    "sglang",
    (
        message(0, stored(-5, 2, cache_salt="tenant-secret", session_id="object-secret", medium="CPU_PINNED")),
        message(1, ["BlockStored", [7], None, [424242], 1, None, "GPU", "tenant-secret"], {"type": "AllBlocksCleared"}),
        message(2, removed(2, medium="DISK")),
    ),
    {"BlockStored": 2, "BlockRemoved": 1, "AllBlocksCleared": 1},
    {"block_created": 3, "evicted": 1, "tier_cleared": 2, "namespace_declared": 1},
    {"topic": "last", "seq": 0, "payload": [TS, [stored(4711)], 0]},
)


def trt_block(block_hash: int | str, level: int = 0, **more: object) -> dict[str, object]:
    """A stored block of TensorRT-LLM."""
    token = {"type": "unique_token", "token_id": 424242, "token_extra_id": 0}
    told: dict[str, object] = {"type": "stored_block", "block_hash": block_hash, "tokens": [token] * 4, "cache_level": level}
    return told | {"priority": 35} | more


def trt_event(event_id: int, data: dict[str, object], **envelope: object) -> dict[str, object]:
    """An event of TensorRT-LLM."""
    return {"event_id": event_id, "data": data, **envelope}


_DIFF: Final = {"type": "event_diff", "new_value": 1, "old_value": 0}
TRTLLM: Final = Case(
    "trtllm",
    (
        trt_event(0, {"type": "created", "num_blocks_per_cache_level": [8, 2]}),
        trt_event(1, {"type": "stored", "parent_hash": None, "blocks": [trt_block(2**64 - 7), trt_block(12)]}, window_size=16),
        trt_event(
            3,
            {"type": "updated", "block_hash": 12, "cache_level": _DIFF, "priority": {**_DIFF, "old_value": 50, "new_value": 9}},
            window_size=16,
        ),
        trt_event(
            0,
            {
                "type": "stored",
                "parent_hash": None,
                "blocks": [trt_block("ab" * 32, cache_salt="tenant-secret", mm_keys=[])],
            },
            layer_group_id=1,
            hash_algo="v2_sha256",
            attention_dp_rank=1,
        ),
        trt_event(1, {"type": "removed", "block_hashes": ["ab" * 32]}, layer_group_id=1, attention_dp_rank=1),
        trt_event(4, {"type": "updated", "block_hash": 12, "cache_level": None, "priority": {}}, window_size=16),
        {
            "iter": 5,
            "iterLatencyMS": 12.5,
            "timestamp": "11-29-2026 10:00:00.250000",
            "inflightBatchingStats": {"numCtxTokens": 100, "numGenRequests": 3, "avgNumDecodedTokensPerIter": 1.0},
            "kvCacheIterationStats": {"16": {"iterOnboardBytes": 4096, "iterOffloadBytes": 0}},
        },
        {
            "request_id": 77,
            "perf_metrics": {
                "first_iter": 4,
                "last_iter": 6,
                "timing_metrics": {
                    "arrival_time": 10.0,
                    "first_scheduled_time": 10.5,
                    "first_token_time": 11.0,
                    "last_token_time": 12.0,
                    "kv_cache_size": 1000,
                    "kv_cache_transfer_start": 10.1,
                    "kv_cache_transfer_end": 10.4,
                },
                "kv_cache_metrics": {"num_reused_blocks": 3, "num_missed_blocks": 4},
            },
        },
    ),
    {"created": 1, "stored": 2, "updated": 2, "removed": 1, "iteration": 1, "request": 1},
    {
        "manifest_declared": 1,
        "block_created": 3,
        "namespace_declared": 2,
        "swap_out_written": 1,
        "evicted": 2,
        "events_dropped": 1,
        "step_started": 1,
        "step_finished": 1,
        "counter_sampled": 1 + 7 + 2 + 2,
        "request_arrived": 1,
        "request_admitted": 1,
        "request_first_token": 1,
        "request_finished": 1,
        "swap_in_started": 1,
        "swap_in_loaded": 1,
    },
    trt_event(9, {"type": "stored", "parent_hash": None, "blocks": [trt_block(4711)]}, attention_dp_rank=9),
)

TRANSFERS: Final = Case(
    "trtllm-transfers",
    (
        {"RequestID": "5", "Delay(ms)": "1.5", "Duration(ms)": "2", "Bandwidth(Gbps)": "8"},
        {
            "RequestID": "6",
            "RequestInfo": "0",
            "Preparation": "1",
            "Preprocess": "1",
            "Transmissions": "1",
            "Postprocess": "1",
            "Delay": "1",
            "Duration": "2",
            "Bandwidth(Gbps)": "8",
            "Delay.2": "3",
            "Duration.2": "4",
            "Bandwidth(Gbps).2": "8",
        },
        {
            "timestamp": "1795975516.25",
            "task_type": "KVSendTask",
            "unique_rid": "object-secret",
            "peer_rank": "1",
            "transfer_size_bytes": "4096",
            "avg_segment_size_bytes": "1",
            "transfer_entry_count": "1",
            "prepare_args_latency_ms": "0.5",
            "queue_latency_ms": "47",
            "transfer_latency_ms": "10.7",
            "task_latency_ms": "58.2",
            "throughput_mbs": "1",
        },
    ),
    {"transfer": 4},
    {"swap_in_queued": 3, "swap_in_loaded": 3, "swap_out_queued": 1, "swap_out_written": 1},
    {"RequestID": "4711", "Delay(ms)": "1", "Duration(ms)": "2", "Bandwidth(Gbps)": "8"},
    sequence="rank_0_recv",
)


def lm_batch(seq: int, event_type: str, *entries: object, **fields: object) -> dict[str, object]:
    """A `CacheEventBatch`."""
    told: dict[str, object] = {"instance_id": "lm-a", "incarnation": 1795975425, "seq": seq, "event_type": event_type}
    return told | {"tier": "l1", "backend": "dram", "entries": list(entries), "shared": False, "ts": TS} | fields


def lm_entry(digits: str) -> dict[str, object]:
    """A `CacheEventEntry`."""
    key = {"chunk_hash_hex": digits, "model_name": "model-secret", "kv_rank": 1, "object_group_id": 0}
    return {"key": key | {"cache_salt": "tenant-secret"}, "size_bytes": 524288, "token_ids": [424242], "token_offset": -1}


LMCACHE: Final = Case(
    "lmcache",
    (
        {"batches": [lm_batch(1, "store", lm_entry("00aa"), lm_entry("00bb")), lm_batch(2, "delete", lm_entry("00aa"))]},
        lm_batch(2, "delete", lm_entry("00aa")),
        lm_batch(4, "store", lm_entry("00bb"), tier="l2", backend="fs"),
        lm_batch(5, "access", lm_entry("00bb"), backend=""),
        lm_batch(6, "config", capacity_bytes=1 << 30, capacity_revision=1),
    ),
    {"store": 2, "store entries": 3, "delete": 1, "delete entries": 1, "access": 1, "config": 1},
    {
        "namespace_declared": 1,
        "block_created": 3,
        "evicted": 1,
        "events_dropped": 1,
        "counter_sampled": 1,
        "tier_declared": 1,
    },
    lm_batch(1, "store", lm_entry("4711"), instance_id="last"),
)


def bus(event_type: str, at_s: float, session: str = "", **metadata: object) -> dict[str, object]:
    """An event of LMCache's bus."""
    return {"event_type": event_type, "timestamp": TS + at_s, "metadata": metadata, "session_id": session}


LMCACHE_BUS: Final = Case(
    "lmcache-bus",
    (
        bus("mp.lookup_prefetch.start", 0, "r1"),
        bus("l2.load_task.submitted", 0.1, request_id=1, adapter_index=0, task_id=5, l2_name="fs", key_count=2, total_bytes=99),
        bus("l2.load_task.completed", 0.4, request_id=1, adapter_index=0, task_id=5, l2_name="fs"),
        bus("mp.lookup_prefetch.end", 0.5, "r1", requested_tokens=64, l1_hit_tokens=16, l2_hit_tokens=32, found_count=3),
        bus("mp.retrieve.start", 0.5, "r1", transfer_key="r1#0", device="cpu"),
        bus("mp.retrieve.end", 0.6, "r1", transfer_key="r1#0", total_bytes=50, num_tokens=48, cache_salt="tenant-secret"),
        bus("mp.store.start", 0.7, "r1", transfer_key="r1#1"),
        bus("mp.store.end", 0.8, "r1", transfer_key="r1#1", total_bytes=50, num_tokens=16, model_name="model-secret"),
        bus("l2.store.submitted", 0.8, adapter_index=0, task_id=6, l2_name="fs", key_count=1, total_bytes=9),
        bus("l2.store.completed", 0.9, adapter_index=0, task_id=6, l2_name="fs", succeeded_count=0, failed_count=1),
        bus("l1.allocation.failed", 1, during="l2_prefetch"),
        bus("timeout.raised", 1, exception_type="TimeoutError"),
        bus("l1.keys.evicted", 1, keys=["object-secret", "b"]),
    ),
    {
        "mp.lookup_prefetch.start": 1,
        "l2.load_task.submitted": 1,
        "l2.load_task.completed": 1,
        "mp.lookup_prefetch.end": 1,
        "mp.retrieve.start": 1,
        "mp.retrieve.end": 1,
        "mp.store.start": 1,
        "mp.store.end": 1,
        "l2.store.submitted": 1,
        "l2.store.completed": 1,
        "l1.allocation.failed": 1,
        "timeout.raised": 1,
        "l1.keys.evicted": 1,
    },
    {
        "swap_in_queued": 1,
        "swap_in_loaded": 2,
        "swap_in_started": 1,
        "lookup_finished": 1,
        "swap_out_started": 1,
        "swap_out_written": 1,
        "swap_out_queued": 1,
        "swap_out_failed": 1,
        "error": 2,
        "counter_sampled": 3,
    },
    bus("l2.store.submitted", 9, adapter_index=0, task_id=4711, l2_name="fs", key_count=1, total_bytes=9),
)


def router(event_id: int, data: object, tier: str = "device", worker: int = 3) -> dict[str, object]:
    """A `RouterEvent` of Dynamo."""
    event = {"event_id": event_id, "data": data, "dp_rank": 0}
    return {"worker_id": worker, "storage_tier": tier, "residency_domain": "worker", "event": event}


def router_store(*hashes: int) -> dict[str, object]:
    """What a router event stores."""
    blocks = [{"block_hash": one, "tokens_hash": 424242, "mm_extra_info": None} for one in hashes]
    return {"stored": {"parent_hash": None, "start_position": None, "blocks": blocks}}


DYNAMO: Final = Case(
    "dynamo",
    (
        router(0, router_store(2**64 - 9, 2)),
        router(1, {"removed": {"block_hashes": [2]}}),
        router(3, router_store(2), "host_pinned"),
        router(4, "cleared"),
        {"event_id": 0, "data": router_store(1), "dp_rank": 1},
        router(0, router_store(8)),
    ),
    {"stored": 4, "removed": 1, "cleared": 1},
    {"block_created": 5, "evicted": 1, "tier_cleared": 1, "events_dropped": 1},
    router(0, router_store(4711), worker=99),
)


def rfc(event_type: str, **fields: object) -> dict[str, object]:
    """An event of RFC 1527."""
    told: dict[str, object] = {"event_id": 1, "timestamp": int(TS * 1000), "event_type": event_type, "type": "BlockStored"}
    return (
        told
        | {"medium": "cpu", "model_name": None, "block_size": None, "dp_rank": None, "object_key": "object-secret"}
        | fields
    )


def rfc_message(number: int, *events: object) -> dict[str, object]:
    """A message of Mooncake's socket."""
    raw = msgspec.msgpack.encode([int(TS * 1000) + number, list(events), 0])
    return {"topic": "", "seq": number, "payload_b64": base64.b64encode(raw).decode()}


MOONCAKE: Final = Case(
    "mooncake-events",
    (
        rfc_message(0, rfc("stored", seq_hashes=[1, 2], parent_hash=None, tenant_id="tenant-secret", block_size=4)),
        rfc_message(1, rfc("removed", seq_hashes=[1])),
        rfc_message(3, rfc("stored", block_hashes=[5], medium="ssd", base_block_idx=2, block_size=4, token_ids=[424242])),
        rfc_message(4, rfc("cleared")),
    ),
    {"stored": 2, "removed": 1, "cleared": 1},
    {"namespace_declared": 2, "block_created": 3, "evicted": 1, "events_dropped": 1, "tier_cleared": 1},
    {"topic": "last", "seq": 0, "payload": [int(TS * 1000), [rfc("stored", seq_hashes=[4711])], 0]},
)

TRACE: Final = Case(
    "mooncake-trace",
    (
        {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]},
        {"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]},
    ),
    {"request": 2},
    {"request_arrived": 2, "counter_sampled": 6},
    {"timestamp": 4711, "input_length": 1, "output_length": 1, "hash_ids": [0]},
)

CASES: Final = (VLLM, SGLANG, TRTLLM, TRANSFERS, LMCACHE, LMCACHE_BUS, DYNAMO, MOONCAKE, TRACE)
"""One of each format."""
