"""What there is to choose from: engines with their ranks and times, tenants and models with the operator's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import duckdb
import msgspec

from kvtrail_collector.engine_shapes import EngineRow, Engines, Named
from kvtrail_collector.questions.clocks import APART_NS
from kvtrail_collector.questions.scope import namespaces_of

_ENGINES: Final = f"""
WITH arrived AS (
    SELECT stream_id, min(arrived_ns) AS first_ns, max(arrived_ns) AS last_ns, count(*) AS requests FROM requests GROUP BY ALL
), heard AS (
    SELECT *, wall_ns - monotonic_ns AS offset_ns,
        abs(offset_ns - max_by(offset_ns, heard_wall_ns) OVER (PARTITION BY engine)) <= {APART_NS} AS is_now
    FROM streams JOIN stream_marks USING (stream_id) LEFT JOIN arrived USING (stream_id)
)
SELECT engine, list(DISTINCT rank ORDER BY rank), min(first_ns) FILTER (is_now),
    max(greatest(last_ns, monotonic_ns)) FILTER (is_now),
    max_by(offset_ns, heard_wall_ns), coalesce(sum(requests), 0)::BIGINT, max(heard_wall_ns)
FROM heard GROUP BY engine ORDER BY sum(requests) DESC NULLS LAST, engine LIMIT 1000
"""  # noqa: S608  # a constant of ours
# Times are those of the clock that runs now: a host that starts anew begins its clock anew, too.
_STREAM_IDS: Final = "SELECT stream_id FROM streams"
_MOST_NAMES: Final = 1_000


def engines_known(
    cursor: duckdb.DuckDBPyConnection, names: Mapping[str, str], devices: Mapping[str | None, str | None]
) -> Engines:
    """Everything that a filter can name, busiest engine first."""
    rows = cursor.execute(_ENGINES).fetchall()
    engines = [msgspec.structs.replace(EngineRow(*row), device=devices.get(row[0])) for row in rows]
    spaces = namespaces_of(cursor, [row[0] for row in cursor.execute(_STREAM_IDS).fetchall()])
    tenants = sorted({space.tenant for space in spaces if space.tenant})
    models = sorted({space.model for space in spaces if space.model})
    return Engines(engines, _named(tenants, names), _named(models, names), devices.get(None))


def _named(values: list[str], names: Mapping[str, str]) -> list[Named]:
    """Hashed values with their names."""
    return [Named(value, names.get(value, value)) for value in values[:_MOST_NAMES]]
