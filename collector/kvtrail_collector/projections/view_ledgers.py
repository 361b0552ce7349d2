"""Kept ledgers as rows for people: one a request and part, with names in place of codes."""

from collections.abc import Mapping
from typing import Final

from kvtrail_collector.ledger_codes import component_names, detail_names


def _cases(names: Mapping[int, str]) -> str:
    """The part of a CASE that turns numbers to names."""
    return " ".join(f"WHEN {number} THEN '{name}'" for number, name in names.items())


_COMPONENTS: Final = _cases(dict(enumerate(component_names())))
_DETAILS: Final = " ".join(f"WHEN {part} THEN CASE detail {_cases(names)} END" for part, names in detail_names().items())

REQUEST_PARTS: Final = f"""
WITH amounts AS (
    SELECT stream_id, req, arrived_ns, end_kind != 0 AS censored, unnest(labels) AS code, unnest(parts_ns) AS ns,
        unnest(hidden_ns) AS hidden_ns
    FROM request_ledgers
), split AS (SELECT *, code >> 16 AS part, ((code >> 12) & 15)::INTEGER - 1 AS tier_number, code & 4095 AS detail FROM amounts)
SELECT stream_id, req, arrived_ns, censored, CASE part {_COMPONENTS} END AS component, tier_name(tier_number) AS tier,
    CASE part {_DETAILS} ELSE reason_name(detail) END AS reason, ns, hidden_ns
FROM split
"""  # noqa: S608  # constants of ours
