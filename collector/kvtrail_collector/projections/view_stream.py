"""What is known of the stream itself: its holes, and the files that its old events lie in."""

from typing import Final

GAPS: Final = """
WITH heads AS (
    SELECT stream_id, first_seq, last_seq, lead(first_seq) OVER own AS next_seq FROM seq_ranges
    WINDOW own AS (PARTITION BY stream_id ORDER BY first_seq)
), missing AS (
    SELECT stream_id, last_seq + 1 AS first_seq, coalesce(next_seq - 1, produced) AS last_seq
    FROM heads JOIN stream_marks USING (stream_id)
    UNION ALL
    SELECT stream_id, 1, coalesce(min(first_seq) - 1, any_value(produced))
    FROM stream_marks LEFT JOIN seq_ranges USING (stream_id)
    GROUP BY stream_id
)
SELECT stream_id, first_seq::UBIGINT AS first_seq, last_seq::UBIGINT AS last_seq,
    coalesce((SELECT sum(least(drops.last_seq, missing.last_seq)::HUGEINT - greatest(drops.first_seq, missing.first_seq) + 1)
        FROM drop_ranges AS drops WHERE drops.stream_id = missing.stream_id AND drops.count > drops.last_seq - drops.first_seq
        AND drops.first_seq <= missing.last_seq AND drops.last_seq >= missing.first_seq), 0)::UBIGINT AS dropped
FROM missing WHERE last_seq >= first_seq
"""

PARTS: Final = """
SELECT part_id, file, "rows", size_bytes, make_timestamp(last_wall_ns // 1000) AS newest,
    (SELECT list(DISTINCT engine ORDER BY engine) FROM sealed_ranges AS own JOIN streams USING (stream_id)
        WHERE own.part_id = sealed_parts.part_id) AS engines
FROM sealed_parts
"""
