"""Broken invariants, as they were found while events came in, with names and the moments on the engine's clock."""

from typing import Final

VERDICTS: Final = """
SELECT engine, epoch, rank, code, tier_name(tier) AS tier, what, cases, seqs[1] AS first_seq, seqs, first_ns, last_ns,
    until_seq, missed AS seqs_not_looked_at, coalesce(list_contains("unknown", code), false) AS may_be_more, stream_id
FROM stream_verdicts JOIN streams USING (stream_id) LEFT JOIN stream_watches USING (stream_id)
"""
