"""`CORRUPT_BLOCK`: a stored block failed its check; says whether anybody was served from it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule

_QUESTION: Final = """
WITH failed AS (
    SELECT stream_id, seq, t_ns, block, coalesce(src, tier) AS tier FROM window_events
    WHERE kind IN (kind_no('swap_in_failed'), kind_no('error')) AND reason = reason_no('checksum')
), served AS (
    SELECT failed.stream_id, failed.seq, min(own.seq) AS read_seq FROM failed JOIN window_events AS own
        ON own.stream_id = failed.stream_id AND own.block = failed.block AND own.kind = kind_no('attention_read')
            AND own.seq > failed.seq
    WHERE NOT EXISTS (SELECT 1 FROM window_events AS fresh WHERE fresh.stream_id = failed.stream_id
        AND fresh.block = failed.block
        AND fresh.kind IN (kind_no('block_created'), kind_no('swap_in_loaded')) AND fresh.seq > failed.seq
            AND fresh.seq < own.seq)
    GROUP BY ALL
), ended AS (
    SELECT DISTINCT failed.stream_id, failed.seq FROM failed JOIN window_events AS own
        ON own.stream_id = failed.stream_id AND own.block = failed.block AND own.kind = kind_no('invalidated')
            AND own.seq > failed.seq
)
SELECT failed.tier, count(*) AS failures, count(served.seq) AS served, count(ended.seq) AS invalidated,
    hex16(arg_min(failed.block, failed.seq)) AS block, count(served.seq) * 1000000000 AS touched_ns,
    refs_of(failed.stream_id, coalesce(served.read_seq, failed.seq)) AS refs
FROM failed LEFT JOIN served USING (stream_id, seq) LEFT JOIN ended USING (stream_id, seq) GROUP BY failed.stream_id,
    failed.tier
"""

RULE: Final = Rule(
    code="CORRUPT_BLOCK",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="What was read is not what was written: checksum, length or header is wrong. `served` must be 0.",
    check="SELECT block, kind, reason, t_ns FROM events WHERE reason = reason_no('checksum')",
    action="invalidate the block and compute it again; if `served` is not 0, treat it as an incident",
    unlike="`READ_FAILURE`: nothing could be read at all.",
    question=_QUESTION,
    triggers=(Kind.SWAP_IN_FAILED, Kind.ERROR),
)
