"""`PREFETCH_READY_DELAY`: the I/O of a prefetch ended long before the scheduler looked."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
SELECT src AS tier, count(*) AS blocks, avg(completed_ns - issued_ns) / 1e6 AS mean_io_ms,
    avg(ready_ns - completed_ns) / 1e6 AS mean_unseen_ms, max(ready_ns - completed_ns) / 1e6 AS longest_unseen_ms,
    sum(ready_ns - completed_ns) AS touched_ns, sum(ready_ns - completed_ns) / sum(ready_ns - issued_ns) AS share,
    refs_of(stream_id, seq) AS refs
FROM window_prefetches WHERE ready_ns >= completed_ns AND completed_ns >= issued_ns AND ready_ns > issued_ns
GROUP BY stream_id, src
HAVING avg(ready_ns - completed_ns) >= $unseen_ms * 1e6
    AND sum(ready_ns - completed_ns) >= $times * sum(completed_ns - issued_ns)
"""

RULE: Final = Rule(
    code="PREFETCH_READY_DELAY",
    family=Family.PREFETCH,
    basis=Basis.MECHANISM,
    means="The data was there; the scheduler noticed it much later, since it looks only when its scan reaches the request.",
    check="SELECT prefetch, max(t_ns) - min(t_ns) FROM events "
    "WHERE kind IN (kind_no('prefetch_completed'), kind_no('prefetch_ready')) GROUP BY prefetch",
    action="poll completions in every step",
    unlike="Slow I/O: there the time is between issue and completion.",
    question=_QUESTION,
    needs=(Need((Kind.PREFETCH_COMPLETED,)), Need((Kind.PREFETCH_READY,))),
    thresholds=(
        Threshold("unseen_ms", 500, "ms", "how long finished prefetches stayed unseen on average"),
        Threshold("times", 3, "ratio", "and how many times the time of their I/O that was"),
    ),
)
