"""The formats of `kvtrail import`, by name; and, for each, what it cannot tell and what follows from that."""

from typing import Final

from kvtrail_agent.importers.dynamo import DynamoEvents
from kvtrail_agent.importers.format import Format, Missing, TimeBase
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_agent.importers.lmcache_bus import LmcacheBus
from kvtrail_agent.importers.mooncake_events import MooncakeEvents
from kvtrail_agent.importers.mooncake_trace import MooncakeTrace
from kvtrail_agent.importers.records import read_csv, read_json
from kvtrail_agent.importers.trtllm import TrtllmDecoder
from kvtrail_agent.importers.trtllm_transfers import TrtllmTransfers
from kvtrail_agent.importers.vllm_messages import VllmMessages
from kvtrail_agent.importers.vllm_wire import Dialect

_NO_DURATIONS: Final = Missing("durations", "latency verdicts unavailable")
_NO_REQUESTS: Final = Missing("requests", "no ledger, no attribution, `kvtrail why` has nothing to explain")
_NO_REASONS: Final = Missing("reasons of removals", "all of them stand as capacity; resets and demotions cannot be told apart")
_NO_BYTES: Final = Missing("bytes", "no bandwidth, no figures of tiers in bytes")
_NO_TIMES: Final = Missing("times", "events have their order only; rates and windows mean nothing")
_BATCH_TIMES: Final = Missing("times of single events", "all events of a message have the time of its sending")
_PLACEMENT: Final = (_NO_DURATIONS, _NO_REQUESTS, _NO_REASONS)

_FORMATS: Final = (
    Format(
        name="vllm",
        title="KV events of vLLM, messages of its socket, one a line",
        read=read_json,
        open=lambda source: VllmMessages(source, Dialect.VLLM),
        times=TimeBase.WALL,
        missing=(*_PLACEMENT, _NO_BYTES, _BATCH_TIMES),
        left_out=("token_ids", "lookahead_token_ids", "session_id", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"),
    ),
    Format(
        name="sglang",
        title="KV events of SGLang, messages of its socket, one a line",
        read=read_json,
        open=lambda source: VllmMessages(source, Dialect.SGLANG),
        times=TimeBase.WALL,
        missing=(*_PLACEMENT, _NO_BYTES, _BATCH_TIMES),
        left_out=("token_ids", "session_id"),
    ),
    Format(
        name="trtllm",
        title="TensorRT-LLM: cache events, iteration statistics, request metrics, as its endpoints give them",
        read=read_json,
        open=TrtllmDecoder,
        times=TimeBase.ORDER,
        missing=(
            Missing("durations of copies", "latency verdicts of tiers unavailable; a move stands where it was told"),
            Missing("requests of cache events", "what a request loaded is estimated by iterations, and named `estimate`"),
            *(_NO_REASONS, _NO_BYTES, _NO_TIMES),
            Missing("lengths of prompts and outputs", "0 in requests; strata by length mean nothing"),
        ),
        left_out=("tokens", "mm_keys"),
    ),
    Format(
        name="trtllm-transfers",
        title="TensorRT-LLM: CSV files with the timings of KV transfers between workers",
        read=read_csv,
        open=TrtllmTransfers,
        times=TimeBase.STEADY,
        missing=(
            Missing("requests as a whole", "no ledger; transfers are known by their request's id"),
            Missing("times of day, in files of the C++ transceiver", "transfers lie one behind the other; durations are right"),
        ),
        left_out=("RequestInfo", "Preparation", "Preprocess", "Transmissions", "Postprocess", "task_latency_ms"),
    ),
    Format(
        name="lmcache",
        title="LMCache: cache events (CacheEventBatch), as it sends them to Kafka or a coordinator",
        read=read_json,
        open=LmcacheBatches,
        times=TimeBase.WALL,
        missing=(*_PLACEMENT, _BATCH_TIMES),
        left_out=("token_ids", "keys that were accessed (their number is kept)"),
    ),
    Format(
        name="lmcache-bus",
        title="LMCache: events of the bus inside its server, one a line",
        read=read_json,
        open=LmcacheBus,
        times=TimeBase.WALL,
        missing=(
            Missing("requests of L2 loads and stores", "time in L2 is known by tier, not by request"),
            Missing("queue and I/O apart", "both are in one span: queue verdicts unavailable"),
            Missing("life of requests", "no ledger, no attribution"),
        ),
        left_out=("keys and hashes (their number is kept)", "texts"),
    ),
    Format(
        name="dynamo",
        title="Dynamo: events of its KV router, one a line",
        read=read_json,
        open=DynamoEvents,
        times=TimeBase.ORDER,
        missing=(*_PLACEMENT, _NO_BYTES, _NO_TIMES),
        left_out=("tokens_hash", "mm_extra_info", "start_position"),
    ),
    Format(
        name="mooncake-events",
        title="Mooncake: KV events of its store (RFC 1527), messages of its socket, one a line",
        read=read_json,
        open=MooncakeEvents,
        times=TimeBase.WALL,
        missing=(*_PLACEMENT, _NO_BYTES),
        left_out=("token_ids", "object_key", "event_id"),
    ),
    Format(
        name="mooncake-trace",
        title="Mooncake: traces of requests, one a line",
        read=read_json,
        open=MooncakeTrace,
        times=TimeBase.STEADY,
        missing=(
            Missing("an engine", "no tiers, no copies, no durations: latency verdicts unavailable"),
            Missing("ends of requests", "every request stays open"),
        ),
        left_out=("hash_ids (how many came before is kept)",),
    ),
)

FORMATS: Final[dict[str, Format]] = {one.name: one for one in _FORMATS}
"""Every format by its name."""
