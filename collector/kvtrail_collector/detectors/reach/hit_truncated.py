"""`HIT_TRUNCATED`: lookups found more than was loaded; the rest was computed again for want of room."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH cut AS (
    SELECT stream_id, req, sum(tokens) AS tokens, min(seq) AS seq FROM window_events
    WHERE kind = kind_no('prefill_chunk') AND reason = reason_no('truncated') GROUP BY stream_id, req
), found AS (
    SELECT stream_id, req, sum(coalesce(tokens_gpu, 0) + coalesce(tokens_host, 0) + coalesce(tokens_nvme, 0)
        + coalesce(tokens_remote, 0)) AS tokens
    FROM window_events WHERE kind = kind_no('lookup_finished') GROUP BY stream_id, req
)
SELECT count(*) AS requests, sum(cut.tokens) AS tokens_cut, sum(found.tokens) AS tokens_found,
    sum(cut.tokens) / greatest(sum(found.tokens), sum(cut.tokens)) AS share, 0 AS touched_ns, refs_of(stream_id,
        cut.seq) AS refs
FROM cut JOIN found USING (stream_id, req) GROUP BY stream_id
HAVING count(*) >= $requests AND sum(cut.tokens) >= $share * sum(found.tokens)
"""

RULE: Final = Rule(
    code="HIT_TRUNCATED",
    family=Family.REACH,
    basis=Basis.MECHANISM,
    means="Hits are cut short: less is loaded than was found, since there is no room to load it into.",
    check="SELECT req, sum(tokens) FROM events WHERE kind = kind_no('prefill_chunk') AND reason = "
    "reason_no('truncated') GROUP BY req",
    action="enlarge the staging room, or load in turns",
    unlike="Data that is missing: `PHANTOM_HIT`, `READ_FAILURE`.",
    question=_QUESTION,
    needs=(Need((Kind.LOOKUP_FINISHED,)), Need((Kind.PREFILL_CHUNK,))),
    thresholds=(
        Threshold("requests", 5, "requests", "how many requests must have been cut"),
        Threshold("share", 0.2, "share", "which share of the tokens found was cut"),
    ),
)
