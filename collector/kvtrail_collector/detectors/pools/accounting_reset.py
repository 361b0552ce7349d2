"""`ACCOUNTING_RESET`: after a restart a tier says that it is empty, while its file system is as full as before."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule, Threshold

_QUESTION: Final = """
WITH sample AS (
    SELECT engine, epoch, rank, stream_id, tier, offset_ns, arg_min(used_bytes, t_ns) AS first_used,
        arg_max(used_bytes, t_ns) AS last_used, arg_min(free_bytes, t_ns) AS first_free, arg_max(free_bytes, t_ns) AS last_free,
        min(t_ns) AS began_ns, arg_min(seq, t_ns) AS seq
    FROM window_events JOIN window_clocks USING (stream_id)
    WHERE kind = kind_no('capacity_sampled') AND tier = tier_no('nvme') AND used_bytes IS NOT NULL
        AND free_bytes IS NOT NULL AND ns IS NULL
    GROUP BY ALL
), told AS (
    SELECT stream_id, max(previous_epoch) AS previous_epoch FROM window_events
    WHERE kind = kind_no('agent_started') AND previous_epoch IS NOT NULL GROUP BY stream_id
), run AS (
    SELECT *, lag(last_used) OVER rank_in_order AS earlier_used, lag(last_free) OVER rank_in_order AS earlier_free FROM sample
    WINDOW rank_in_order AS (PARTITION BY engine, rank, tier, offset_ns IS NULL ORDER BY began_ns + coalesce(offset_ns, 0))
), life AS (
    SELECT run.*, CASE WHEN is_told THEN before.last_used ELSE earlier_used END AS used_before,
        CASE WHEN is_told THEN before.last_free ELSE earlier_free END AS free_before
    FROM (SELECT run.*, previous_epoch,
        offset_ns IS NULL AND count(previous_epoch) OVER (PARTITION BY engine, rank) > 0 AS is_told
        FROM run LEFT JOIN told USING (stream_id)) AS run
    LEFT JOIN sample AS before ON before.engine = run.engine AND before.rank = run.rank AND before.tier = run.tier
        AND before.epoch = run.previous_epoch
)
SELECT life.tier, used_before AS used_bytes_before, first_used AS used_bytes_after, free_before AS disk_free_before,
    first_free AS disk_free_after, 0 AS touched_ns, [{'stream': stream_id, 'seq': seq}] AS refs
FROM life WHERE used_before >= $gib * 1073741824 AND first_used <= 0.05 * used_before
    AND first_free - free_before < 0.5 * used_before
    AND NOT EXISTS (SELECT 1 FROM window_events AS found WHERE found.stream_id = life.stream_id
        AND found.kind = kind_no('orphan_found'))
"""
"""Which run came before is known by the time of day; failing that, by what processes of the rank say of it."""

RULE: Final = Rule(
    code="ACCOUNTING_RESET",
    family=Family.POOLS,
    basis=Basis.MECHANISM,
    means="The tier forgot what lies on its disk: it will write as if it had all of it, until the disk is full.",
    check="SELECT stream_id, t_ns, used_bytes, free_bytes FROM events WHERE kind = kind_no('capacity_sampled') ORDER BY t_ns",
    action="scan the disk and rebuild the index",
    unlike="A fresh disk. `ORPHANS`: the scan was made and found them.",
    question=_QUESTION,
    needs=(Need((Kind.CAPACITY_SAMPLED,), ("free_bytes",)),),
    triggers=(Kind.CAPACITY_SAMPLED,),
    thresholds=(Threshold("gib", 0.1, "GiB", "how much the tier must have held before"),),
)
