"""`STUCK_LOAD`: the loads of one request make no progress, while those of others do."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH own AS (
    SELECT stream_id, req, src, dst, max(tier) AS tier, count(*) AS blocks, min(queued_ns) AS since_ns, min(ns) AS ns,
        refs_of(stream_id, seq) AS refs
    FROM window_open WHERE is_load AND req IS NOT NULL GROUP BY stream_id, req, src, dst
), moved AS (
    SELECT stream_id, req, src, dst, t_ns FROM window_events WHERE kind = kind_no('swap_in_loaded')
        AND EXISTS (SELECT 1 FROM own)
), judged AS (
    SELECT own.stream_id, own.req, any_value(own.tier) AS tier, any_value(own.ns) AS ns, any_value(own.blocks) AS blocks,
        any_value(own.since_ns) AS since_ns, any_value(own.refs) AS refs, any_value(stream.last_ns) AS last_ns,
        coalesce(max(moved.t_ns) FILTER (moved.req = own.req), any_value(own.since_ns)) AS progress_ns,
        count(*) FILTER (moved.req IS DISTINCT FROM own.req AND moved.src IS NOT NULL
            AND moved.t_ns > own.since_ns) AS loaded_by_others
    FROM own JOIN window_streams AS stream USING (stream_id)
    LEFT JOIN moved ON moved.stream_id = own.stream_id AND moved.src = own.src AND moved.dst = own.dst
    GROUP BY own.stream_id, own.req, own.src, own.dst
), finished AS (
    SELECT stream_id, req, coalesce(ended_ns, first_token_ns) AS t_ns FROM window_requests WHERE first_token_ns IS NOT NULL
        OR ended_ns IS NOT NULL
), alive AS (
    SELECT judged.stream_id, judged.req, count(*) AS others FROM judged JOIN finished
    ON finished.stream_id = judged.stream_id AND finished.req <> judged.req AND finished.t_ns > judged.since_ns GROUP BY ALL
)
SELECT judged.tier, arg_max(judged.ns, judged.last_ns - since_ns) AS ns, count(*) AS requests, sum(blocks) AS cases,
    arg_max(coalesce(request.label, hex16(judged.req)), judged.last_ns - since_ns) AS request, sum(blocks) AS blocks_missing,
    max(judged.last_ns - progress_ns) / 1e9 AS no_progress_for_s, max(loaded_by_others) AS loaded_by_others,
    max(coalesce(alive.others, 0)) AS others_finished, sum(judged.last_ns - since_ns)::BIGINT AS touched_ns,
    flatten(list(refs))[:5] AS refs
FROM judged LEFT JOIN alive USING (stream_id, req)
LEFT JOIN window_requests AS request ON request.stream_id = judged.stream_id AND request.req = judged.req
WHERE judged.last_ns - progress_ns >= $stuck_s * 1e9 AND loaded_by_others + coalesce(alive.others, 0) > 0
    AND request.ended_ns IS NULL
GROUP BY judged.stream_id, judged.tier
"""

RULE: Final = Rule(
    code="STUCK_LOAD",
    family=Family.HANGS,
    basis=Basis.MECHANISM,
    means="A request waits for blocks that do not come, and nothing ends the wait. Others are served meanwhile: "
    "the engine is well.",
    check="SELECT op, min(t_ns), count(*) FROM events WHERE kind BETWEEN 33 AND 36 AND req = 1 GROUP BY op",
    action="time the load out and compute again; give loads a deadline",
    unlike="`LOAD_STUCK`: no load of the path succeeds. `ENGINE_STALL`: nothing at all happens.",
    question=_QUESTION,
    needs=(Need((Kind.SWAP_IN_QUEUED,)), Need((Kind.SWAP_IN_LOADED, Kind.SWAP_IN_FAILED, Kind.REQUEST_FINISHED))),
    thresholds=(Threshold("stuck_s", 30, "s", "for how long no block of the request has come"),),
    evidence=Evidence.ABSENCE,
)
