"""`LOAD_STUCK`: all loads of a path fail or hang."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH hung AS (
    SELECT stream_id, src, dst, count(*) AS blocks, min(queued_ns) AS since_ns, refs_of(stream_id, seq) AS refs
    FROM window_open WHERE is_load GROUP BY ALL
), failed AS (
    SELECT stream_id, src, dst, count(*) AS blocks, min(t_ns) AS since_ns, mode(reason) AS reason, refs_of(stream_id,
        seq) AS refs
    FROM window_events WHERE kind = kind_no('swap_in_failed') AND reason <> reason_no('cancelled') GROUP BY ALL
), loaded AS (
    SELECT stream_id, src, dst, max(t_ns) AS last_ns FROM window_events WHERE kind = kind_no('swap_in_loaded') GROUP BY ALL
), path AS (
    SELECT stream_id, src, dst, coalesce(hung.blocks, 0) AS hung, coalesce(failed.blocks, 0) AS failed,
        least(hung.since_ns, failed.since_ns) AS since_ns, failed.reason, coalesce(failed.refs, hung.refs) AS refs,
            hung.since_ns AS hung_ns
    FROM hung FULL JOIN failed USING (stream_id, src, dst)
), wrong AS (SELECT stream_id, count(*) AS errors, mode(reason) AS reason FROM window_events
    WHERE kind = kind_no('error') GROUP BY ALL
)
SELECT greatest(src, dst) AS tier, tier_name(src) || ' -> ' || tier_name(dst) AS path, failed, hung, failed + hung AS cases,
    reason_name(coalesce(path.reason, wrong.reason)) AS most_common_reason,
        (stream.last_ns - hung_ns) / 1e9 AS oldest_in_flight_s,
    stream.last_ns - path.since_ns AS touched_ns, refs
FROM path JOIN window_streams AS stream USING (stream_id) LEFT JOIN wrong USING (stream_id)
LEFT JOIN loaded USING (stream_id, src, dst)
WHERE coalesce(loaded.last_ns, path.since_ns) <= path.since_ns AND failed + hung >= $loads
    AND (failed >= $loads OR stream.last_ns - hung_ns >= $stuck_s * 1e9)
    AND coalesce(path.reason, reason_no('io')) <> reason_no('missing')
"""

RULE: Final = Rule(
    code="LOAD_STUCK",
    family=Family.HANGS,
    basis=Basis.MECHANISM,
    means="Since some moment not one load from this tier has worked: all failed, or never ended. Requests that need it stop.",
    check="SELECT kind, src, dst, reason, count(*) FROM events WHERE kind BETWEEN 33 AND 36 GROUP BY ALL",
    action="disable the tier; requests then compute again",
    unlike="`STUCK_LOAD`: one request's. `READ_FAILURE`: a part of the loads. `PHANTOM_HIT`: the failures say `missing`.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_FAILED)),),
    triggers=(Kind.SWAP_IN_QUEUED, Kind.SWAP_IN_FAILED),
    thresholds=(
        Threshold("loads", 10, "blocks", "how many must have failed or hang"),
        Threshold("stuck_s", 30, "s", "for how long the oldest hangs, where fewer have failed"),
    ),
)
