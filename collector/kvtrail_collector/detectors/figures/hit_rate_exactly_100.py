"""`HIT_RATE_EXACTLY_100`: every lookup of varied prompts found all it asked for, to the token."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH asked AS (
    SELECT stream_id, req, seq, tokens, coalesce(tokens_gpu, 0) + coalesce(tokens_host, 0) + coalesce(tokens_nvme, 0)
        + coalesce(tokens_remote, 0) AS found
    FROM window_events WHERE kind = kind_no('lookup_finished') AND tokens > 0
)
SELECT count(*) AS lookups, count(DISTINCT tokens) AS prompt_lengths, sum(found) / sum(tokens) AS hit_rate, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM asked GROUP BY stream_id
HAVING count(*) >= $lookups AND count(*) FILTER (found = tokens) = count(*) AND count(DISTINCT tokens) >= $lengths
"""

RULE: Final = Rule(
    code="HIT_RATE_EXACTLY_100",
    family=Family.FIGURES,
    basis=Basis.MECHANISM,
    means="A perfect hit rate over different prompts is rather a bug than luck: misses padded to the length of "
    "the question, say.",
    check="SELECT tokens, tokens_gpu, tokens_host, tokens_nvme, tokens_remote FROM events WHERE kind = "
    "kind_no('lookup_finished')",
    action="check how empty places in the answer of a lookup are counted",
    unlike="One prompt that is repeated: its hit rate may well be perfect.",
    question=_QUESTION,
    needs=(Need((Kind.LOOKUP_FINISHED,), ("tokens_gpu", "tokens_host", "tokens_nvme", "tokens_remote")),),
    thresholds=(
        Threshold("lookups", 50, "lookups", "how many must have been perfect"),
        Threshold("lengths", 10, "lengths", "how many different lengths of prompts there must be"),
    ),
)
