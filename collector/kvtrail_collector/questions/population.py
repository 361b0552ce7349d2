"""All stored requests with their ledgers, as a population: kept ledgers, and those that are still open computed now."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_names import declared, models, tenants
from kvtrail_collector.facts_rows import IdArray, IntArray
from kvtrail_collector.ledger_accounts import SCHEMA, Accounts, account
from kvtrail_collector.ledger_codes import cause_places
from kvtrail_collector.ledger_open import one_moment, open_requests, seen
from kvtrail_collector.ledger_paint import Tally
from kvtrail_collector.ledger_rows import holes_of, last_ns, lives
from kvtrail_collector.population import Population, cause_of
from kvtrail_collector.questions.rows import StreamRow

_SHOWN: Final = SCHEMA.remove(SCHEMA.get_field_index("hidden_ns"))
_KEPT: Final = f"""
SELECT {", ".join(_SHOWN.names)} FROM request_ledgers ANTI JOIN open_in USING (stream_id, req)
WHERE stream_id IN (SELECT unnest(?::INTEGER[]))
"""  # noqa: S608  # names of ours
_NAMES: Final = f"""SELECT ns, "text" FROM events WHERE kind = {Kind.NAMESPACE_DECLARED.value} AND ns IS NOT NULL"""  # noqa: S608  # a constant of ours


class StoredPopulation(NamedTuple):
    """A population, whose requests are named by stream and number at the same place; `model` and `tenant` have names.

    `ns` is the namespace that a request arrived with, `end` how its ledger ends, as in `RequestColumns`.
    """

    population: Population
    stream_id: IntArray
    req: IdArray
    ns: IdArray
    end: IntArray
    models: tuple[str, ...]
    tenants: tuple[str, ...]


def stored_population(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow]) -> StoredPopulation:
    """The requests of some streams, in the order of arrival, as they are at this moment. Worker thread.

    About a microsecond for each request whose ledger is kept; those still open cost a look at the events around them.
    """
    with one_moment(cursor):
        accounts = Accounts.of(pa.concat_tables(_ledgers(cursor, wanted)))
        known = declared(cursor.execute(_NAMES).fetchall())
    model, tenant = models(accounts.ns, known), tenants(accounts.ns, known)
    return StoredPopulation(
        population=_population(accounts, model.numbers, tenant.numbers),
        stream_id=accounts.stream,
        req=accounts.req,
        ns=accounts.ns,
        end=accounts.end,
        models=model.names,
        tenants=tenant.names,
    )


def _ledgers(cursor: duckdb.DuckDBPyConnection, wanted: list[StreamRow]) -> list[pa.Table]:
    """The ledgers that are kept, and those that are not: their requests run, or something came that changes them."""
    ids = [stream.stream_id for stream in wanted]
    table = open_requests(cursor, ids)
    with seen(cursor, "open_in", table):
        kept = cursor.execute(_KEPT, [ids]).to_arrow_table().cast(_SHOWN)
    stream_id, req = table["stream_id"].to_numpy(), np.asarray(table["req"].to_numpy(), dtype=np.uint64)
    present = [stream for stream in wanted if stream.stream_id in stream_id]
    still_open = (_open_of(cursor, stream, np.unique(req[stream_id == stream.stream_id])) for stream in present)
    return [kept, *(ledgers.select(_SHOWN.names) for ledgers in still_open)]


def _open_of(cursor: duckdb.DuckDBPyConnection, stream: StreamRow, req: IdArray) -> pa.Table:
    """The ledgers of requests of one stream, so far."""
    found = lives(cursor, stream.stream_id, req)
    if not len(found.req):
        return SCHEMA.empty_table()
    span = int(found.arrived_ns.min()), last_ns(cursor, stream.stream_id)
    return account(cursor, stream, found.req, span, holes_of(cursor, stream.stream_id))


def _population(accounts: Accounts, model: IntArray, tenant: IntArray) -> Population:
    """Rows of ledgers as a population."""
    tally, count = Tally(), len(accounts.req)
    tally.add(accounts.request, cause_places(accounts.codes), accounts.parts_ns)
    amounts = tally.table(count)
    return Population(
        causes=tuple(cause_of(code) for code in amounts.codes.tolist()),
        arrived_ns=accounts.arrived_ns,
        latency_ns=accounts.end_ns - accounts.arrived_ns,
        censored=np.asarray(accounts.end != 0),
        amounts_ns=amounts.ns,
        prompt_tokens=accounts.prompt_tokens,
        model=model,
        tenant=tenant,
        place=np.arange(count),
    )
