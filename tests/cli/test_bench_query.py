"""Promises of `kvtrail bench query`: the facts are what they say they are, and the figures come from a real run."""

import msgspec
from kvtrail_cli.bench.query_facts import INTERVALS, drawn_facts
from kvtrail_cli.bench.query_shapes import QueryBench
from kvtrail_cli.main import APP
from kvtrail_collector.ledger_columns import ledgers_of
from typer.testing import CliRunner


def test_facts_have_so_many_intervals() -> None:
    """Forty-one intervals a request, of every sort, and ledgers that add up."""
    facts = drawn_facts(100)
    intervals = 6 * len(facts.own_op) + len(facts.lookups.request) + len(facts.waits.request) + len(facts.chunks.request)
    ledgers = ledgers_of(facts)

    assert INTERVALS * 100 == intervals
    assert (ledgers.end_ns - ledgers.start_ns).tolist() == ledgers.parts.ns.sum(axis=1).tolist()
    assert len(ledgers.parts.codes) > 15


def test_a_run_answers_in_its_shape() -> None:
    """A short run stores everything, and fills in every figure."""
    done = CliRunner().invoke(APP, ["bench", "query", "--events", "100000", "--json"])
    found = msgspec.json.decode(done.stdout, type=QueryBench)

    assert (100_000, 1_000) == (found.events, found.requests)
    assert found.critical_path_requests_per_s > 0
    assert found.all_rules_ms_per_million >= sum(found.rules_ms_per_million.values()) > 0
    assert found.watch_ns_per_event > 0
    assert min(found.attribution_s, found.why_s, found.diagnose_s, found.peer.duckdb_aggregate_s) > 0
