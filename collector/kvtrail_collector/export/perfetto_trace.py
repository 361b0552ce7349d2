"""A timeline as a Perfetto trace: https://perfetto.dev/docs/reference/synthetic-track-event.

Slices of one Perfetto track must nest, and transfers overlap. So each of our tracks becomes as many tracks of Perfetto's as
overlap at once, of one name under one parent, which its viewer shows as one asynchronous track.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_MONOTONIC,
    BUILTIN_CLOCK_REALTIME,
    CounterDescriptor,
    Trace,
    TracePacket,
    TrackEvent,
)

from kvtrail_collector.export.lanes import lay
from kvtrail_collector.export.shapes import Process, Sample, Slice

_UNITS: Final = {"bytes": CounterDescriptor.UNIT_SIZE_BYTES, "transfers": CounterDescriptor.UNIT_COUNT}


def perfetto_trace(processes: Sequence[Process]) -> bytes:
    """The trace, serialised; opens at ui.perfetto.dev. On the calling thread; some 20 µs and 500 bytes of memory a slice.

    All times are those of the engines' monotonic clocks; the first engine's calibration makes them wall time.
    """
    trace = Trace()
    if processes:
        trace.packet.append(_clocks(processes[0]))
    uuids = iter(range(1, 1 << 62))
    for number, process in enumerate(processes, 1):
        trace.packet.extend(_process(process, number, uuids))
    serialised: bytes = trace.SerializeToString()
    return serialised


def _clocks(process: Process) -> TracePacket:
    """How the clocks stand to each other, at the first moment that is shown."""
    starts = [piece.start_ns for piece in process.slices] or [sample.at_ns for sample in process.samples]
    at_ns = max(min(starts), 0)
    packet = TracePacket(trusted_packet_sequence_id=1)
    packet.clock_snapshot.primary_trace_clock = BUILTIN_CLOCK_BOOTTIME
    for clock, value in (
        (BUILTIN_CLOCK_BOOTTIME, at_ns),
        (BUILTIN_CLOCK_MONOTONIC, at_ns),
        (BUILTIN_CLOCK_REALTIME, at_ns + process.wall_offset_ns),
    ):
        packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=value)
    return packet


def _process(process: Process, number: int, uuids: Iterator[int]) -> Iterator[TracePacket]:
    """One rank: its own line, its tracks below it, and what happened on them, track by track."""
    root = next(uuids)
    head = TracePacket(trusted_packet_sequence_id=1)
    head.track_descriptor.uuid = root
    head.track_descriptor.process.pid = number
    head.track_descriptor.process.process_name = f"{process.engine} rank {process.rank}"
    yield head
    for name in dict.fromkeys(piece.track for piece in process.slices):
        yield from _track(name, [piece for piece in process.slices if piece.track == name], root, uuids)
    for name in dict.fromkeys(sample.counter for sample in process.samples):
        yield from _counter(name, [sample for sample in process.samples if sample.counter == name], root, next(uuids))


def _track(name: str, slices: list[Slice], parent: int, uuids: Iterator[int]) -> Iterator[TracePacket]:
    """One track of ours: a lane for each that overlaps, all of one name, so that they are shown as one."""
    lanes: dict[int, int] = {}
    for lane, piece in lay(slices):
        if lane not in lanes:
            lanes[lane] = next(uuids)
            yield _descriptor(lanes[lane], parent, name)
        yield _begin(lanes[lane], piece)
        yield _event(lanes[lane], piece.end_ns, TrackEvent.TYPE_SLICE_END)


def _counter(name: str, samples: list[Sample], parent: int, uuid: int) -> Iterator[TracePacket]:
    """One counter, in its unit."""
    packet = _descriptor(uuid, parent, name)
    packet.track_descriptor.counter.unit = _UNITS[samples[0].unit]
    yield packet
    for sample in samples:
        value = _event(uuid, sample.at_ns, TrackEvent.TYPE_COUNTER)
        value.track_event.counter_value = sample.value
        yield value


def _descriptor(uuid: int, parent: int, name: str) -> TracePacket:
    """What a track is called, and whose it is."""
    packet = TracePacket(trusted_packet_sequence_id=1)
    packet.track_descriptor.uuid = uuid
    packet.track_descriptor.parent_uuid = parent
    packet.track_descriptor.name = name
    return packet


def _begin(uuid: int, piece: Slice) -> TracePacket:
    """The begin of a slice, with what is known of it."""
    packet = _event(uuid, piece.start_ns, TrackEvent.TYPE_SLICE_BEGIN)
    packet.track_event.name = piece.name
    for name, value in piece.notes.items():
        if isinstance(value, int):
            packet.track_event.debug_annotations.add(name=name, uint_value=value)
        else:
            packet.track_event.debug_annotations.add(name=name, string_value=value)
    return packet


def _event(uuid: int, at_ns: int, kind: TrackEvent.Type) -> TracePacket:
    """One moment on a track. Perfetto's times are unsigned."""
    packet = TracePacket(trusted_packet_sequence_id=1, timestamp=max(at_ns, 0), timestamp_clock_id=BUILTIN_CLOCK_MONOTONIC)
    packet.track_event.track_uuid = uuid
    packet.track_event.type = kind
    return packet
