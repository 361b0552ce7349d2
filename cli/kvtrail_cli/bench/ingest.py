"""Measures ingest: a real collector in a process of its own, fed over HTTP or from Kafka, and the raw insert beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_collector.store import SealPolicy, Store
from kvtrail_collector.store.backlog import ROW_GROUP
from kvtrail_collector.store.store import sealed_folder

from kvtrail_cli.bench.mix import EVENTS_A_REQUEST, Mix
from kvtrail_cli.bench.senders import Arrival, Parcel, reading, send_all
from kvtrail_cli.bench.server import STORE, Peaks, serving
from kvtrail_cli.bench.shapes import GrowthPoint, IngestBench, Source
from kvtrail_cli.output import Advance

_STREAM_EVENTS: Final = 2_000_000
"""Events of one stream; more of them come as further epochs of the same engine."""
_RAW_GROUPS: Final = 4
_GROWTH_POINTS: Final = 4
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent, and by how many."""

    events: int
    frame_rows: int
    senders: int
    readers: int
    source: Source = Source.HTTP
    bootstrap: str = ""
    """Brokers to use; empty: one of our own, for as long as it takes."""
    rate: int = 0
    """Events a second to send; 0: as fast as they are taken."""
    seal_after_s: float = 0.0
    """Age from which events are sealed meanwhile; theirs is years. 0: never, so that the hot file has all of them."""

    @property
    def variables(self) -> dict[str, str]:
        """What the collector is told."""
        return {"KVTRAIL_SEAL_AFTER_S": str(self.seal_after_s)}


def bench_ingest(load: Load, folder: Path, advance: Advance) -> IngestBench:
    """Measure once. Takes about ten seconds a million events, most of it to make them; 15 bytes of memory an event."""
    raw = _raw_rows_per_s(folder)
    arrivals, peaks = _FED[load.source](load, folder, advance)
    events = sum(arrival.rows for arrival in arrivals)
    return IngestBench(
        source=load.source.value,
        events=events,
        events_per_s=_rate(arrivals),
        rows_per_s_raw_duckdb=raw,
        lag_p99_ms=_lag_p99_ms(arrivals) if load.source is Source.HTTP else None,
        hot_bytes_per_event=(folder / STORE).stat().st_size / events,
        sealed_bytes_per_event=_sealed_bytes_per_event(folder),
        rss_mb=peaks.rss_bytes / 1e6,
        wal_max_mb=peaks.wal_bytes / 1e6,
        hot_max_mb=peaks.hot_bytes / 1e6,
        cpu_s_per_million_events=peaks.cpu_s * 1e6 / events,
        readers=load.readers,
        growth=tuple(_growth(arrivals)),
    )


class _Fed(NamedTuple):
    """What came of feeding a collector."""

    arrivals: list[Arrival]
    peaks: Peaks


def _by_http(load: Load, folder: Path, advance: Advance) -> _Fed:
    """Many senders at once."""
    parcels = list(_parcels(load))
    with serving(folder, load.variables) as server:
        peaks = Peaks(server.pid, folder)
        with reading(server.url, load.readers):
            arrivals = send_all(server.url, parcels, load.senders, advance)
        peaks.stop()
    return _Fed(arrivals, peaks)


def _from_kafka(load: Load, folder: Path, advance: Advance) -> _Fed:
    """A topic that was filled before, and whose producer has ended."""
    from kvtrail_cli.bench.kafka_load import filled_topic, watch_stored  # noqa: PLC0415 - an extra that HTTP does not need

    rows: list[int] = []

    def counted() -> Iterator[Parcel]:
        for parcel in _parcels(load):
            rows.append(parcel.rows)
            yield parcel

    with (
        filled_topic(counted(), load.bootstrap, folder) as filled,
        serving(folder, {**load.variables, **filled.variables}) as server,
    ):
        peaks = Peaks(server.pid, folder)
        with reading(server.url, load.readers):
            arrivals = watch_stored(server.url, sum(rows), advance)
        peaks.stop()
    return _Fed(arrivals, peaks)


_FED: Final = {Source.HTTP: _by_http, Source.KAFKA: _from_kafka}


def _lag_p99_ms(arrivals: list[Arrival]) -> float:
    """From sending a batch to its acknowledgement."""
    return float(np.percentile([arrival.done_ns - arrival.sent_ns for arrival in arrivals], 99)) / 1e6


def _sealed_bytes_per_event(folder: Path) -> float:
    """What the same events take once all of them are sealed."""
    path = folder / STORE
    everything = SealPolicy(folder=sealed_folder(str(path)) or folder, seal_after_ns=1, every_s=0)
    with Store.open(str(path), seal=everything) as store:
        store.seal_now()
        sealed = store.sealed()
    return sealed.size_bytes / max(sealed.rows, 1)


def _parcels(load: Load) -> Iterator[Parcel]:
    """The frames to send: one stream after another, each an epoch of its own."""
    left, epoch, sent = load.events, 1, 0
    while left > 0:
        events = min(left, _STREAM_EVENTS)
        mix = Mix(-(-events // EVENTS_A_REQUEST), epoch=epoch, seed=epoch)
        rows = [min(load.frame_rows, mix.events - first) for first in range(0, mix.events, load.frame_rows)]
        for frame, count in zip(mix.frames(load.frame_rows), rows, strict=True):
            sent += count
            yield Parcel(frame, count, sent * _SECOND_NS // load.rate if load.rate else 0)
        left, epoch = left - events, epoch + 1


def _rate(arrivals: list[Arrival]) -> float:
    """Events a second from the first batch sent to the last one acknowledged."""
    begin_ns = min(arrival.sent_ns for arrival in arrivals)
    return sum(arrival.rows for arrival in arrivals) * _SECOND_NS / (arrivals[-1].done_ns - begin_ns)


def _growth(arrivals: list[Arrival]) -> Iterator[GrowthPoint]:
    """The rate in each quarter of the run, in the order of acknowledgement."""
    begin_ns, rows = min(arrival.sent_ns for arrival in arrivals), 0
    for part in np.array_split(np.arange(len(arrivals)), _GROWTH_POINTS):
        own = [arrivals[place] for place in part.tolist()]
        if own:
            stored = sum(arrival.rows for arrival in own)
            rows += stored
            yield GrowthPoint(rows, stored * _SECOND_NS / max(own[-1].done_ns - begin_ns, 1))
            begin_ns = own[-1].done_ns


def _raw_rows_per_s(folder: Path) -> float:
    """Rows a second of one wide insert from Arrow, a commit each four row groups, no projections, no books, no network."""
    table = Mix(-(-2 * _RAW_GROUPS * ROW_GROUP // EVENTS_A_REQUEST)).table()
    parts = [table.slice(first, _RAW_GROUPS * ROW_GROUP) for first in (0, _RAW_GROUPS * ROW_GROUP)]
    path = folder / "raw.duckdb"
    with duckdb.connect(str(path), config={"storage_compatibility_version": "latest"}) as connection:
        connection.register("part", table.slice(0, 0))
        connection.execute("CREATE TABLE raw AS SELECT * FROM part")
        seconds = [_insert(connection, part) for part in parts]
    path.unlink()
    return float(sum(part.num_rows for part in parts) / sum(seconds))


def _insert(connection: duckdb.DuckDBPyConnection, part: pa.Table) -> float:
    """The seconds that one insert and its commit take."""
    connection.register("part", part)
    begin = time.perf_counter()
    connection.execute("INSERT INTO raw SELECT * FROM part")
    return time.perf_counter() - begin
