"""What the pages are measured on: the mix of the ingest benchmark over an hour, with samples, heartbeats and prefetches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_schema import events
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import VERSION, BatchHeader, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event
from kvtrail_schema.identity import BlockId, NamespaceId, PrefetchId, RequestId
from kvtrail_schema.reasons import AgentReason, PrefetchWasteReason

from kvtrail_cli.bench.mix import EPOCH_BEGINS_NS, EVENTS_A_REQUEST, Mix
from kvtrail_cli.bench.senders import Parcel

ENGINE: Final = "bench"
SPAN_NS: Final = 3_600_000_000_000
"""The time over which the requests arrive."""
_SPELL_NS: Final = 120_000_000_000
_STREAM_EVENTS: Final = 2_000_000
_FRAME_ROWS: Final = 65_536
_SAMPLE_NS: Final = 1_000_000_000
_WALL_OFFSET_NS: Final = 1_700_000_000_000_000_000
_SAMPLES_EPOCH: Final = 1 << 40
_BEATS_EPOCH: Final = 1 << 41
_NAMESPACE: Final = NamespaceId(77)
_CAPACITY_BYTES: Final = 1 << 34


def parcels(wanted: int) -> Iterator[Parcel]:
    """Frames of at least so many events: streams that follow each other over an hour, and one beside them of samples."""
    streams = -(-wanted // _STREAM_EVENTS)
    requests = -(-wanted // streams // EVENTS_A_REQUEST)
    every_ns = SPAN_NS // streams // requests
    for place in range(streams):
        slow = _spell(requests, every_ns) if place == streams - 1 else (0, 0)
        mix = Mix(requests, ENGINE, epoch=place + 1, seed=place + 1, request_every_ns=every_ns, slow=slow)
        yield from _frames(_later(mix.table(), place * every_ns * requests), place + 1)
    yield from _frames(table_of(list(_samples())), _SAMPLES_EPOCH)


def _spell(requests: int, every_ns: int) -> tuple[int, int]:
    """The requests of the last stream that arrive in two minutes from its middle on: reads are slow then."""
    first = requests // 2
    return first, min(first + _SPELL_NS // every_ns, requests)


def one_more(seq: int) -> bytes:
    """A heartbeat in a stream of its own: what was computed before it is not known to be true any more."""
    beat = events.AgentHeartbeat(seq=seq, t_ns=EPOCH_BEGINS_NS + seq, reason=AgentReason.RECORDER, produced=seq)
    return next(_frames(table_of([beat]), _BEATS_EPOCH)).frame


def _later(table: pa.Table, shift_ns: int) -> pa.Table:
    """The same events, later."""
    place = table.schema.get_field_index("t_ns")
    return table.set_column(place, table.schema.field(place), pc.add(table["t_ns"], shift_ns))


def _frames(table: pa.Table, epoch: int) -> Iterator[Parcel]:
    """A stream as it travels."""
    for first in range(0, table.num_rows, _FRAME_ROWS):
        part = table.slice(first, _FRAME_ROWS)
        yield Parcel(encode_batch(_header(part, epoch), part), part.num_rows)


def _header(part: pa.Table, epoch: int) -> BatchHeader:
    """The header of a part."""
    last_seq, now_ns = int(part["seq"][-1].as_py()), int(part["t_ns"][-1].as_py())
    return BatchHeader(
        version=VERSION,
        engine=ENGINE,
        epoch=epoch,
        rank=0,
        first_seq=int(part["seq"][0].as_py()),
        last_seq=last_seq,
        count=part.num_rows,
        produced=last_seq,
        clocks=Clocks(monotonic_ns=now_ns, wall_ns=_WALL_OFFSET_NS + now_ns, error_ns=100),
    )


def _samples() -> Iterator[Event]:
    """A namespace; then once a second each tier, a heartbeat, and a prefetch with its end. Seqs from 1, without a hole."""
    text = json.dumps({"tenant": "aa", "model": "bb"})
    told: list[Event] = [events.NamespaceDeclared(ns=_NAMESPACE, text=text, t_ns=EPOCH_BEGINS_NS)]
    for second in range(SPAN_NS // _SAMPLE_NS):
        told += _second(EPOCH_BEGINS_NS + second * _SAMPLE_NS, second)
    for seq, event in enumerate(told, 1):
        yield msgspec.structs.replace(event, seq=seq)


def _second(now_ns: int, second: int) -> list[Event]:
    """Tiers that fill and empty, a heartbeat, and a block of which each third is fetched in vain."""
    prefetch, block = PrefetchId(second + 1), BlockId(second + 1)
    end: Event = events.PrefetchUsed(prefetch=prefetch, block=block, req=RequestId(1), t_ns=now_ns + 1)
    if second % 3 == 0:
        end = events.PrefetchWasted(prefetch=prefetch, block=block, reason=PrefetchWasteReason.TOO_LATE, t_ns=now_ns + 1)
    issued = events.PrefetchIssued(
        prefetch=prefetch, block=block, src=Tier.NVME, dst=Tier.HOST, bytes=1 << 21, t_ns=now_ns, req=RequestId(1)
    )
    beat = events.AgentHeartbeat(reason=AgentReason.RECORDER, produced=7 * second, t_ns=now_ns)
    return [*(_sample(now_ns, tier, second) for tier in Tier), beat, issued, end]


def _sample(now_ns: int, tier: Tier, second: int) -> Event:
    """A tier at one moment."""
    used = _CAPACITY_BYTES * (second % 100) // 100
    return events.CapacitySampled(
        tier=tier,
        capacity_bytes=_CAPACITY_BYTES,
        used_bytes=used,
        evictable_bytes=used,
        depth=second % 7,
        in_flight=second % 3,
        t_ns=now_ns,
    )
