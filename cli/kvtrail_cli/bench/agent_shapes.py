"""What `kvtrail bench agent` answers; loads nothing."""

import msgspec


class Overhead(msgspec.Struct, frozen=True):
    """What the engine's thread pays, in percent of its own time a step: median over pairs of windows, 90 % interval."""

    median: float
    low: float
    high: float


class AgentBench(msgspec.Struct, frozen=True):
    """The recorder on one machine; `_ns` are nanoseconds a call on the engine's thread, the call itself included.

    `emit_ns` is `swap_in_loaded` with 13 arguments by position, `emit_block_ns` a row of forty blocks in one numpy buffer,
    `emit_p999_ns` single calls with `heap_objects` on the heap, `disabled_ns` the same call once closed. `events_per_s` is
    from emit to acknowledged frames on disk, waited for whenever half of the ring is full. `gil_hold_max_us` is the most
    processor time that one call of ours, or one beat of the heartbeat, kept the interpreter. The overhead is of steps of a
    millisecond, each with fifty events, blocks of an op by one call; it was taken at `engine_events_per_s`.
    `wire_bytes_per_event` is of batches of 4,096 at 50,000 events a second. `otel_span_ns` is null where its
    library is not installed.
    """

    writer: str
    emit_ns: float
    emit_p999_ns: float
    emit_block_ns: float
    disabled_ns: float
    python_emit_ns: float
    prometheus_inc_ns: float
    prometheus_labelled_inc_ns: float
    otel_span_ns: float | None
    events_per_s: float
    engine_overhead_pct: Overhead
    engine_events_per_s: float
    gil_hold_max_us: float
    wire_bytes_per_event: float
    heap_objects: int
    device: str
    schema: int = 1
