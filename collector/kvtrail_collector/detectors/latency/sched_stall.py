"""`SCHED_STALL`: steps start late after a burst of bookkeeping; the mean hides it, the maximum shows it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH step AS (
    SELECT stream_id, seq, started_ns, finished_ns, device_ns,
        lead(started_ns) OVER (PARTITION BY stream_id ORDER BY started_ns) AS next_ns,
        lead(coalesce(tokens, 1)) OVER (PARTITION BY stream_id ORDER BY started_ns) AS next_tokens
    FROM window_steps WHERE started_ns IS NOT NULL AND finished_ns IS NOT NULL
), gap AS (
    SELECT *, next_ns - finished_ns AS gap_ns FROM step WHERE next_ns >= finished_ns AND next_tokens > 0
), submitted AS (
    SELECT gap.stream_id, gap.started_ns, count(*) AS rows FROM (
        SELECT stream_id, t_ns FROM window_events WHERE kind IN (kind_no('swap_in_queued'), kind_no('swap_out_queued'))
    ) AS queued ASOF JOIN gap ON queued.stream_id = gap.stream_id AND queued.t_ns >= gap.started_ns
    WHERE queued.t_ns < gap.next_ns GROUP BY ALL
), busy AS (
    SELECT gap.*, coalesce(submitted.rows, 0) AS rows FROM gap LEFT JOIN submitted USING (stream_id, started_ns)
), usual AS (SELECT stream_id, median(gap_ns) AS gap_ns, count(*) AS gaps FROM busy GROUP BY stream_id
), late AS (
    SELECT busy.*, busy.gap_ns >= greatest($gap_ms * 1e6, $times * usual.gap_ns) AS is_late, busy.rows >= $burst AS is_burst,
        usual.gap_ns AS usual_ns
    FROM busy JOIN usual USING (stream_id)
)
SELECT count(*) FILTER (is_late AND is_burst) AS cases, count(*) FILTER (is_late AND is_burst) AS late_steps,
    max(gap_ns) FILTER (is_late AND is_burst) / 1e6 AS longest_gap_ms, avg(gap_ns) / 1e6 AS mean_gap_ms,
    max(rows) AS most_transfers_in_a_step, any_value(usual_ns) / 1e6 AS median_gap_ms,
    sum(gap_ns) FILTER (is_late AND is_burst) AS touched_ns,
    sum(gap_ns) FILTER (is_late AND is_burst) / greatest(sum(gap_ns), 1) AS share,
    refs_of(stream_id, seq) FILTER (is_late AND is_burst) AS refs
FROM late GROUP BY stream_id
HAVING count(*) FILTER (is_late AND is_burst) >= $late_steps
    AND count(*) FILTER (is_late AND is_burst) >= 0.8 * count(*) FILTER (is_late)
    AND count(*) FILTER (is_burst) <= 2 * count(*) FILTER (is_late AND is_burst)
"""

RULE: Final = Rule(
    code="SCHED_STALL",
    family=Family.LATENCY,
    basis=Basis.MECHANISM,
    means="The scheduler itself held the engine up: after many transfers were begun in one step, the next step started late.",
    check="SELECT step, min(t_ns), max(t_ns) FROM events WHERE kind IN (kind_no('step_started'), kind_no('step_finished')) "
    "GROUP BY step ORDER BY 2",
    action="spread the submission of transfers over several steps",
    unlike="A device that is still busy in the gap; a machine that stutters: its late steps follow no bursts.",
    question=_QUESTION,
    needs=(Need((Kind.STEP_STARTED,)), Need((Kind.STEP_FINISHED,)), Need((Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED))),
    thresholds=(
        Threshold("gap_ms", 50, "ms", "the least gap between two steps that counts as late"),
        Threshold("times", 10, "ratio", "and how many times the usual gap it must be"),
        Threshold("burst", 32, "rows", "transfers begun in one step that count as a burst"),
        Threshold("late_steps", 3, "steps", "how many late steps there must be"),
    ),
)
