"""Queue occupancy: how many ops wait for a tier, and how many it serves, at each moment at which that changes."""

from typing import Final

_FROM: Final = "FROM ops WHERE queued_ns IS NOT NULL"

QUEUE_OCCUPANCY: Final = f"""
WITH moves AS (
    SELECT stream_id, tier, queued_ns AS t_ns, 1 AS waiting, 0 AS in_service {_FROM}
    UNION ALL SELECT stream_id, tier, coalesce(started_ns, closed_ns), -1, 0 {_FROM}
        AND coalesce(started_ns, closed_ns) IS NOT NULL
    UNION ALL SELECT stream_id, tier, started_ns, 0, 1 {_FROM} AND started_ns IS NOT NULL
    UNION ALL SELECT stream_id, tier, closed_ns, 0, -1 {_FROM} AND started_ns IS NOT NULL AND closed_ns IS NOT NULL
), steps AS (
    SELECT stream_id, tier, t_ns, sum(waiting) AS waiting, sum(in_service) AS in_service FROM moves
    GROUP BY stream_id, tier, t_ns
)
SELECT stream_id, tier, t_ns, (sum(waiting) OVER place)::BIGINT AS waiting, (sum(in_service) OVER place)::BIGINT AS in_service
FROM steps WINDOW place AS (PARTITION BY stream_id, tier ORDER BY t_ns)
"""  # noqa: S608  # a constant of ours
