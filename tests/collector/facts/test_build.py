"""Facts from events: each duration once, each request its own, whatever form and order the rows come in."""

import pyarrow as pa
import pyarrow.compute as pc
from kvtrail_collector.facts import Direction, EndKind, OpEnd, RequestFacts
from kvtrail_collector.facts_build import recording_of_events, recording_of_table
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Epoch, Rank, Stream
from kvtrail_schema.jsonl import read_lines

from tests.collector.attribution.synthetic import Run, stream_table


def events_of(*lines: str) -> list[Event]:
    """Events of JSON lines."""
    return [line.event for line in read_lines(lines)]


def only(events: list[Event]) -> RequestFacts:
    """The facts of the one request that arrives."""
    (facts,) = recording_of_events(events).requests
    return facts


ARRIVED = '{"t_ms": 0, "kind": "request_arrived", "req": "r", "tokens": 10}'


def op_row(t_ms: int, kind: str, more: str) -> str:
    """A row of op 7, a load from nvme for the request."""
    return f'{{"t_ms": {t_ms}, "kind": "{kind}", "op": 7, "src": "nvme", "dst": "gpu", "req": "r", {more}}}'


def test_parts_count_once() -> None:
    """The rows of an op are its blocks: parts stand on the first, bytes add up, the last one closes it."""
    facts = only(
        events_of(
            ARRIVED,
            op_row(1, "swap_in_queued", '"block": "a"'),
            op_row(1, "swap_in_queued", '"block": "b"'),
            op_row(4, "swap_in_started", '"block": "a"'),
            op_row(8, "swap_in_loaded", '"block": "a", "bytes": 100, "queue_ms": 3, "io_ms": 4'),
            op_row(9, "swap_in_loaded", '"block": "b", "bytes": 50'),
        )
    )
    (op,) = facts.ops

    assert (op.queued_ns, op.started_ns, op.closing_ns) == (1_000_000, 4_000_000, 9_000_000)
    assert (op.queue_ns, op.io_ns, op.copy_ns) == (3_000_000, 4_000_000, 0)
    assert (op.bytes, op.direction, op.end) == (150, Direction.LOAD, OpEnd.DONE)


def test_queue_from_start() -> None:
    """Where the engine states no parts, the time until the op went into service was queue."""
    facts = only(
        events_of(
            ARRIVED,
            op_row(1, "swap_in_queued", '"block": "a"'),
            op_row(4, "swap_in_started", '"block": "a"'),
            op_row(8, "swap_in_failed", '"reason": "io"'),
        )
    )

    assert [(op.queue_ns, op.end) for op in facts.ops] == [(3_000_000, OpEnd.FAILED)]


def test_queued_from_parts() -> None:
    """Where only the closing row is there, the op began as long before it as its parts last."""
    facts = only(events_of(ARRIVED, op_row(9, "swap_in_loaded", '"queue_ms": 3, "io_ms": 4')))

    assert [op.queued_ns for op in facts.ops] == [2_000_000]


def test_used_prefetch() -> None:
    """The transfers of a prefetch belong to the request that used it, and to no other."""
    story = events_of(
        ARRIVED,
        '{"t_ms": 0, "kind": "request_arrived", "req": "s", "tokens": 10}',
        '{"t_ms": 1, "kind": "swap_in_queued", "op": 7, "src": "nvme", "dst": "host", "prefetch": 3, "block": "b"}',
        '{"t_ms": 1, "kind": "swap_in_queued", "op": 8, "src": "nvme", "dst": "host", "prefetch": 4, "block": "c"}',
        '{"t_ms": 5, "kind": "prefetch_used", "prefetch": 3, "block": "b", "req": "s"}',
        '{"t_ms": 5, "kind": "prefetch_used", "prefetch": 3, "block": "d", "req": "s"}',
    )
    found = {facts.text: [op.op for op in facts.ops] for facts in recording_of_events(story).requests}

    assert found == {"r": [], "s": [7]}


def test_ends() -> None:
    """A first token ends the ledger; without one it ends where the request did, or now, and says how."""
    first = '{"t_ms": 3, "kind": "request_first_token", "req": "r"}'
    cancelled = '{"t_ms": 5, "kind": "request_cancelled", "req": "r", "reason": "client"}'
    now = '{"t_ms": 9, "kind": "step_started", "step": 1}'

    assert _end(ARRIVED, first, cancelled, now) == (EndKind.FIRST_TOKEN, 3_000_000)
    assert _end(ARRIVED, cancelled, now) == (EndKind.CANCELLED, 5_000_000)
    assert _end(ARRIVED, now) == (EndKind.RUNNING, 9_000_000)


def test_what_ended_a_request_may_be_in_a_hole() -> None:
    """Of one whose end may be lost it is known that it ran until then, and no longer; a later sign of life tells more."""
    arrived = '{"seq": 1, "t_ms": 0, "kind": "request_arrived", "req": "r", "tokens": 10}'
    before = '{"seq": 2, "t_ms": 3, "kind": "step_finished", "step": 1, "tokens": 1, "prefill_tokens": 0, "decode_tokens": 1}'
    after = '{"seq": 9, "t_ms": 7, "kind": "step_finished", "step": 2, "tokens": 1, "prefill_tokens": 0, "decode_tokens": 1}'
    alive = '{"seq": 10, "t_ms": 8, "kind": "lookup_finished", "req": "r", "duration_ms": 0, "tokens": 0}'
    now = '{"seq": 11, "t_ms": 9, "kind": "step_started", "step": 3}'

    assert _end(arrived, before, after, alive.replace('"r"', '"other"'), now) == (EndKind.RUNNING, 3_000_000)
    assert _end(arrived, before, after, alive, now) == (EndKind.RUNNING, 9_000_000)


def test_a_first_token_may_be_in_a_hole() -> None:
    """A request that ended behind a hole did not wait all that time for its first token: the time until the hole is known."""
    arrived = '{"seq": 1, "t_ms": 0, "kind": "request_arrived", "req": "r", "tokens": 10}'
    before = '{"seq": 2, "t_ms": 3, "kind": "lookup_finished", "req": "s", "duration_ms": 0, "tokens": 0}'
    finished = '{"seq": 9, "t_ms": 7, "kind": "request_finished", "req": "r", "tokens": 5}'

    assert _end(arrived, before, finished) == (EndKind.RUNNING, 3_000_000)
    assert _end(arrived, before, finished.replace("9", "3")) == (EndKind.FINISHED, 7_000_000)


def test_one_odd_time_and_many_that_run_do_not_overflow() -> None:
    """Ledgers of all requests lie on one line; it is long enough for whatever a store holds."""
    arrivals = [ARRIVED.replace('"r"', f'"r{number}"') for number in range(8)]
    odd = '{"t_ns": 4611686018427387904, "kind": "counter_sampled", "text": "x", "value": 1.0}'
    ledgers = ledgers_of(recording_of_events(events_of(*arrivals, odd)).columns)

    assert 8 == len(ledgers.start_ns)
    assert (ledgers.parts.ns.sum(axis=1) == ledgers.end_ns - ledgers.start_ns).all()


def _end(*lines: str) -> tuple[EndKind, int]:
    """How the ledger of the one request ends, and when."""
    facts = only(events_of(*lines))
    return facts.end, facts.end_ns


def test_unknown_tier_and_reason() -> None:
    """What a newer sender says in numbers that are not known here is left out, not fatal."""
    table = stream_table(events_of(ARRIVED, op_row(1, "swap_in_queued", '"block": "a"')))
    newer = table.set_column(table.column_names.index("src"), "src", pa.array([None, 200], pa.uint8()))
    (facts,) = recording_of_table(newer).requests

    assert facts.ops == ()


def test_table_is_events(slow_run: Run) -> None:
    """A table of the store gives the same ledgers as the events themselves, also without columns that nobody filled."""
    events = slow_run.numbered()
    stream = Stream("demo", Epoch(7), Rank(0))
    table = stream_table(events)
    ledgers = [ledger_of(facts) for facts in recording_of_events(events, stream).requests]

    assert ledgers == [ledger_of(facts) for facts in recording_of_table(table).requests]
    assert ledgers == [ledger_of(f) for f in recording_of_table(table.drop_columns(["queue", "prefetch", "cause"])).requests]


def test_streams_are_apart(slow_run: Run) -> None:
    """Two ranks may use the same ids: their requests, ops and steps stay apart."""
    one = slow_run.table().slice(0, 2_000)
    other = one.set_column(one.column_names.index("rank"), "rank", pa.array([1] * one.num_rows, pa.uint16()))
    alone, both = recording_of_table(one), recording_of_table(pa.concat_tables([other, one]))
    ledgers = sorted((ledger_of(facts) for facts in alone.requests for _ in range(2)), key=lambda ledger: ledger.request)

    assert 2 * len(alone.requests) == len(both.requests)
    assert ledgers == sorted((ledger_of(facts) for facts in both.requests), key=lambda ledger: ledger.request)


def test_holes_of_the_store(slow_run: Run) -> None:
    """For a selection of rows, the store says where holes are; the table's own seqs would see too many."""
    table = slow_run.table()
    wanted = table.filter(pc.less_equal(table["kind"], pa.scalar(36, pa.uint16())))
    stream = Stream("demo", Epoch(7), Rank(0))
    hole = (5_000_000_000, 6_000_000_000)

    assert recording_of_table(wanted, {}).timelines[0].holes == ()
    assert (hole,) == recording_of_table(wanted, {stream: [hole]}).timelines[0].holes


def test_nothing() -> None:
    """Of no events there are no facts."""
    assert 0 == len(recording_of_events([]).requests)
    assert 0 == len(recording_of_table(stream_table([])).requests)
