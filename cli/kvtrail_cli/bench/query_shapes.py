"""What `kvtrail bench query` answers; loads no database."""

import msgspec


class QueryPeers(msgspec.Struct, frozen=True):
    """Figures beside which those of kvtrail stand, from the same run.

    `duckdb_aggregate_s` is a plain count and five sums by kind over the same stored rows: the least that any answer over all of
    them takes. `ledger_objects_requests_per_s` is the ledger one request at a time, in objects, on facts of the same sort.
    """

    duckdb_aggregate_s: float
    ledger_objects_requests_per_s: float


class QueryBench(msgspec.Struct, frozen=True):
    """How fast questions are answered over so many stored events, a hundred a request.

    `critical_path_requests_per_s` is the ledger of requests with 41 intervals each, in columns, on one core, after their facts
    are there. `ledgers_kept_requests_per_s` is the same from stored events to rows that are kept, which happens once a request.
    `population_s` reads all kept ledgers; `attribution_s` is the whole answer for a spike that is searched for. `why_s` is the
    median over some requests. `diagnose_s` has all codes, given the attribution. Times of one call each, the caches of the
    answers left out. `rules_ms_per_million` is the cost of each code, and of each table that codes share, for a million events;
    `all_rules_ms_per_million` of all of them. `watch_ns_per_event` is what the watch of invariants takes beside ingest.
    """

    events: int
    requests: int
    critical_path_requests_per_s: float
    ledgers_kept_requests_per_s: float
    population_s: float
    attribution_s: float
    why_s: float
    diagnose_s: float
    verdicts: tuple[str, ...]
    rules_ms_per_million: dict[str, float]
    all_rules_ms_per_million: float
    watch_ns_per_event: float
    peer: QueryPeers
    device: str | None = None
    schema: int = 1
