"""One row per request: its times on the engine's clock, how it ended, and its sizes."""

from string import Template
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.projections.projection import Projection, in_kinds, numbers

_ENDS: Final = numbers(Kind.REQUEST_FINISHED, Kind.REQUEST_CANCELLED, Kind.REQUEST_REJECTED)
_KINDS: Final = (
    Kind.REQUEST_ARRIVED,
    Kind.REQUEST_ADMITTED,
    Kind.REQUEST_FIRST_TOKEN,
    Kind.REQUEST_FINISHED,
    Kind.REQUEST_CANCELLED,
    Kind.REQUEST_REJECTED,
)
_ALL: Final = numbers(*_KINDS)

# Of several ends the earliest counts, and at the same instant the kind with the smaller number. $source is a table of ours.
_MERGE: Final = f"""
MERGE INTO requests AS old USING (
    SELECT stream_id, req,
        min("text") FILTER (kind = {Kind.REQUEST_ARRIVED.value}) AS "text",
        min(ns) FILTER (kind = {Kind.REQUEST_ARRIVED.value}) AS ns,
        min(t_ns) FILTER (kind = {Kind.REQUEST_ARRIVED.value}) AS arrived_ns,
        min(t_ns) FILTER (kind = {Kind.REQUEST_ADMITTED.value}) AS admitted_ns,
        min(t_ns) FILTER (kind = {Kind.REQUEST_FIRST_TOKEN.value}) AS first_token_ns,
        min(t_ns) FILTER (kind IN ({_ENDS})) AS ended_ns,
        arg_min(kind, struct_pack(t := t_ns, k := kind)) FILTER (kind IN ({_ENDS})) AS end_kind,
        max(tokens) FILTER (kind = {Kind.REQUEST_ARRIVED.value}) AS prompt_tokens,
        max(tokens) FILTER (kind = {Kind.REQUEST_FINISHED.value}) AS output_tokens
    FROM $source WHERE {in_kinds(_ALL)} AND req + 0 IS NOT NULL GROUP BY stream_id, req
) AS new ON old.stream_id = new.stream_id AND old.req = new.req
WHEN MATCHED THEN UPDATE SET
    "text" = least(old."text", new."text"),
    ns = least(old.ns, new.ns),
    arrived_ns = least(old.arrived_ns, new.arrived_ns),
    admitted_ns = least(old.admitted_ns, new.admitted_ns),
    first_token_ns = least(old.first_token_ns, new.first_token_ns),
    ended_ns = least(old.ended_ns, new.ended_ns),
    end_kind = CASE
        WHEN old.ended_ns = new.ended_ns THEN least(old.end_kind, new.end_kind)
        WHEN old.ended_ns IS NULL OR new.ended_ns < old.ended_ns THEN new.end_kind
        ELSE old.end_kind END,
    prompt_tokens = greatest(old.prompt_tokens, new.prompt_tokens),
    output_tokens = greatest(old.output_tokens, new.output_tokens)
WHEN NOT MATCHED THEN INSERT BY NAME
"""  # noqa: S608  # constants of ours

REQUESTS_PROJECTION: Final = Projection(
    "requests", "req", Template(_MERGE), kinds=_KINDS, columns=("req", "text", "ns", "t_ns", "tokens")
)
