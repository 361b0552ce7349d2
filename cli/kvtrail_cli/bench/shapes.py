"""What the benchmarks answer; loads no database."""

from enum import Enum

import msgspec


class Source(Enum):
    """How a collector is fed."""

    HTTP = "http"
    KAFKA = "kafka"


class GrowthPoint(msgspec.Struct, frozen=True):
    """The rate while the rows up to `rows` were stored, since the point before."""

    rows: int
    events_per_s: float


class IngestBench(msgspec.Struct, frozen=True):
    """Ingest on one machine. `rows_per_s_raw_duckdb` is the same events, decoded, in one wide insert: the limit above it.

    `lag_p99_ms` is from sending a batch to its acknowledgement, and None from Kafka, where all of it was sent before;
    `hot_bytes_per_event` is the whole file with its projections after a clean end; `rss_mb`, `wal_max_mb` and `hot_max_mb`
    are the most that was seen, looking every 50 ms. `cpu_s_per_million_events` is what the collector's process used, on all
    cores: the figure that others' load moves least.
    """

    source: str
    events: int
    events_per_s: float
    rows_per_s_raw_duckdb: float
    lag_p99_ms: float | None
    hot_bytes_per_event: float
    sealed_bytes_per_event: float
    rss_mb: float
    wal_max_mb: float
    hot_max_mb: float
    cpu_s_per_million_events: float
    readers: int
    growth: tuple[GrowthPoint, ...]
    device: str | None = None
    schema: int = 1
