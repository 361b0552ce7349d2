"""Measures questions: a store is filled with a mix that has a spike, its ledgers are kept, and each question is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, TypeVar

import duckdb
from kvtrail_collector.detectors.costs import rule_costs
from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.detectors.scene import Bounds, Scene
from kvtrail_collector.detectors.thresholds import load_thresholds
from kvtrail_collector.diagnose_store import diagnose_store
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.invariants.rows import NEEDED, Rows
from kvtrail_collector.invariants.stream_watch import StreamWatch
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.loss import loss_of
from kvtrail_collector.questions.attribution import attribute_stored
from kvtrail_collector.questions.clocks import one_clock
from kvtrail_collector.questions.population import stored_population
from kvtrail_collector.questions.requests import Found
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.questions.why import why_stored
from kvtrail_collector.store import Incoming, Receipt, Store
from kvtrail_collector.why import Why
from kvtrail_schema.batch import decode_batch
from kvtrail_schema.clock import SystemClock

from kvtrail_cli.bench.mix import EPOCH_BEGINS_NS, EVENTS_A_REQUEST, Mix
from kvtrail_cli.bench.query_facts import drawn_facts
from kvtrail_cli.bench.query_shapes import QueryBench, QueryPeers
from kvtrail_cli.output import Advance

_CRITICAL_REQUESTS: Final = 50_000
_OBJECTS_NS: Final = 1_000_000_000
_PROCESSES: Final = 5
_REQUEST_EVERY_NS: Final = 1_000_000
"""Of each process: a hundred thousand events a second of one, ten million in twenty seconds of five."""
_AHEAD: Final = 8
_FRAME_ROWS: Final = 122_880
_WHYS: Final = 5
_LEAST_MS: Final = 0.5
_SLOW: Final = (0.6, 0.75)
"""Which share of the requests, by arrival, is in the spike."""
_T = TypeVar("_T")

_NAMES: Final = ", ".join(f'"{name}"' for name in NEEDED)
_WATCHED: Final = f"SELECT {_NAMES} FROM events WHERE stream_id = ? ORDER BY seq"  # noqa: S608 - names of ours
_AGGREGATE: Final = """
SELECT kind, count(*), sum("bytes"), sum(queue_ns), sum(io_ns), sum(copy_ns), sum(duration_ns) FROM events GROUP BY kind
"""


def bench_query(events: int, folder: Path, advance: Advance) -> QueryBench:
    """Measure once. About ten seconds a million events, most of it to store them; 30 bytes of disk an event."""
    critical = _critical_path_requests_per_s()
    requests = -(-events // (EVENTS_A_REQUEST * _PROCESSES))
    with Store.open(str(folder / "query.duckdb")) as store:
        _fill(store, requests, advance)
        _, kept_s = _timed(lambda: _keep_all(LedgerKeeper(store, SystemClock())))
        peers = QueryPeers(_aggregate_s(store), _objects_requests_per_s(store))
        found = _ask(store)
        costs = _rules_ms_per_million(store, requests * EVENTS_A_REQUEST * _PROCESSES)
        watch_ns = _watch_ns_per_event(store)
    return QueryBench(
        events=requests * EVENTS_A_REQUEST * _PROCESSES,
        requests=requests * _PROCESSES,
        critical_path_requests_per_s=critical,
        ledgers_kept_requests_per_s=requests * _PROCESSES / kept_s,
        **found._asdict(),
        rules_ms_per_million={name: ms for name, ms in costs.items() if ms >= _LEAST_MS},
        all_rules_ms_per_million=round(sum(costs.values()), 3),
        watch_ns_per_event=watch_ns,
        peer=peers,
    )


class _Answers(NamedTuple):
    """How long each question took, and what was found."""

    population_s: float
    attribution_s: float
    why_s: float
    diagnose_s: float
    verdicts: tuple[str, ...]


def _ask(store: Store) -> _Answers:
    """Ask each question of a filled store."""
    with store.read() as cursor:
        known = streams(cursor)
        _, population_s = _timed(lambda: stored_population(cursor, known))
        found, attribution_s = _timed(lambda: attribute_stored(cursor, one_clock(cursor, known).streams))
        why_s = _why_s(cursor)
    now, thresholds = SystemClock().wall_ns(), load_thresholds("")
    verdicts, diagnose_s = _timed(lambda: diagnose_store(store, found, Bounds(), now, thresholds))
    codes = tuple(dict.fromkeys(verdict.code for verdict in verdicts.verdicts))
    return _Answers(population_s, attribution_s, why_s, diagnose_s, codes)


def _rules_ms_per_million(store: Store, events: int) -> dict[str, float]:
    """What each code costs, and each table that codes share, dearest first."""
    loss = loss_of(store.accounts().values(), SystemClock().wall_ns())
    with store.read() as cursor:
        costs = rule_costs(Scene(cursor, loss), RULES, time.perf_counter_ns)
    ranked = sorted(costs.items(), key=lambda item: -item[1])
    return {name: round(ns / events, 3) for name, ns in ranked}


def _watch_ns_per_event(store: Store) -> float:
    """What the watch of invariants takes for each event of one stream, in batches as they are committed."""
    with store.read() as cursor:
        rows = cursor.execute(_WATCHED, [streams(cursor)[0].stream_id]).to_arrow_table()
    watch = StreamWatch({rule.code: rule.settings({}) for rule in RULES})
    batches = [Rows(rows.slice(first, _FRAME_ROWS)) for first in range(0, rows.num_rows, _FRAME_ROWS)]
    began_ns = time.perf_counter_ns()
    for batch in batches:
        watch.look(batch)
    return round((time.perf_counter_ns() - began_ns) / rows.num_rows, 1)


def _fill(store: Store, requests: int, advance: Advance) -> None:
    """Store the events of an engine's processes, which run at the same time and share the spike, a few batches ahead."""
    slow = int(_SLOW[0] * requests), int(_SLOW[1] * requests)
    waiting: list[Future[Receipt]] = []
    for number in range(_PROCESSES):
        mix = Mix(requests, epoch=number + 1, seed=number, request_every_ns=_REQUEST_EVERY_NS, slow=slow)
        for frame in mix.frames(_FRAME_ROWS):
            waiting.append(store.submit(Incoming(decode_batch(frame), SystemClock().wall_ns())))
            if len(waiting) > _AHEAD:
                waiting.pop(0).result()
        advance(number + 1, _PROCESSES)
    for receipt in waiting:
        receipt.result()


def _keep_all(keeper: LedgerKeeper) -> None:
    """Keep every ledger."""
    while keeper.run_once():
        pass


def _critical_path_requests_per_s() -> float:
    """Ledgers a second, the best of three: what others do on the machine only ever makes it slower."""
    facts = drawn_facts(_CRITICAL_REQUESTS)
    return _CRITICAL_REQUESTS / min(_timed(lambda: ledgers_of(facts))[1] for _ in range(3))


def _objects_requests_per_s(store: Store) -> float:
    """Ledgers a second of single requests, in objects."""
    span = EPOCH_BEGINS_NS, EPOCH_BEGINS_NS + _OBJECTS_NS
    with store.read() as cursor:
        recording = recording_of_table(event_rows(cursor, streams(cursor)[:1], span))
    facts = list(recording.requests)
    return len(facts) / _timed(lambda: [ledger_of(each) for each in facts])[1]


def _aggregate_s(store: Store) -> float:
    """Seconds of a plain look at all rows."""
    with store.read() as cursor:
        return _timed(lambda: cursor.execute(_AGGREGATE).fetchall())[1]


def _why_s(cursor: duckdb.DuckDBPyConnection) -> float:
    """Seconds to explain one request, the median of a few from the beginning to the end."""
    return median(_timed(partial(_why, cursor, found))[1] for found in _some(cursor))


def _why(cursor: duckdb.DuckDBPyConnection, found: Found) -> Why | None:
    """Explain one request."""
    return why_stored(cursor, found, [stream for stream in streams(cursor) if stream.epoch == found.stream.epoch])


def _some(cursor: duckdb.DuckDBPyConnection) -> Iterator[Found]:
    """A few requests, evenly spread."""
    known = {stream.stream_id: stream for stream in streams(cursor)}
    every = "SELECT req, stream_id FROM requests WHERE arrived_ns IS NOT NULL ORDER BY arrived_ns"
    rows = cursor.execute(every).fetchall()
    for place in range(_WHYS):
        req, stream_id = rows[(2 * place + 1) * len(rows) // (2 * _WHYS)]
        yield Found(req, known[stream_id])


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """What some work gives, and the seconds that it takes."""
    begin = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begin
