"""The tables that questions are asked of: each made once a scene, by one query, when the first question names it."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.one_clock import BEGUN_NS, MOST_NS, SAME_NS

OPS: Final = """
WITH base AS (
    SELECT stream_id, op,
        min(req) AS req, min(prefetch) AS prefetch, min(ns) AS ns, min(src) AS src, min(dst) AS dst, max(kind) AS kind,
        min(t_ns) FILTER (kind IN (kind_no('swap_in_queued'), kind_no('swap_out_queued'))) AS queued_ns,
        min(t_ns) FILTER (kind IN (kind_no('swap_in_started'), kind_no('swap_out_started'))) AS started_ns,
        max(t_ns) AS last_ns,
        count(*) FILTER (kind IN (kind_no('swap_in_queued'), kind_no('swap_out_queued'))) AS queued_rows, min(seq) AS seq
    FROM window_events WHERE kind BETWEEN kind_no('swap_out_queued') AND kind_no('swap_in_failed') AND op IS NOT NULL
    GROUP BY stream_id, op
), closing AS (
    SELECT stream_id, op, max(t_ns) AS closed_ns, min(t_ns) AS first_closed_ns, count(*) AS closed_rows,
        sum(bytes) AS bytes, sum(tokens) AS tokens,
        count(*) FILTER (kind IN (kind_no('swap_in_failed'), kind_no('swap_out_failed'))) AS failed_rows, max(reason) AS reason,
        bool_and(pinned) AS pinned, max(numa) AS numa, max(device_numa) AS device_numa
    FROM window_events WHERE kind IN (kind_no('swap_in_loaded'), kind_no('swap_in_failed'), kind_no('swap_out_written'),
        kind_no('swap_out_failed'), kind_no('swap_out_skipped')) AND op IS NOT NULL
    GROUP BY stream_id, op
), part AS (
    SELECT stream_id, op, max(queue_ns) AS queue_ns, max(alloc_ns) AS alloc_ns, max(submit_ns) AS submit_ns,
        max(io_ns) AS io_ns, max(copy_ns) AS copy_ns, max(sync_ns) AS sync_ns
    FROM window_events WHERE kind IN (kind_no('swap_in_loaded'), kind_no('swap_in_failed'), kind_no('swap_out_written'),
        kind_no('swap_out_failed')) AND op IS NOT NULL
        AND coalesce(io_ns, copy_ns, queue_ns, submit_ns, alloc_ns, sync_ns) IS NOT NULL
    GROUP BY stream_id, op
), estimate AS (
    SELECT stream_id, op, max(restore_estimate_ns) AS restore_estimate_ns, max(recompute_estimate_ns) AS recompute_estimate_ns
    FROM window_events WHERE kind IN (kind_no('swap_in_queued'), kind_no('swap_in_started')) AND op IS NOT NULL
        AND recompute_estimate_ns IS NOT NULL
    GROUP BY stream_id, op
)
SELECT base.stream_id, base.op, kind >= kind_no('swap_in_queued') AS is_load, req, prefetch, ns, src, dst,
    greatest(src, dst) AS tier, queued_ns, started_ns, closed_ns, first_closed_ns, last_ns,
    queue_ns, alloc_ns, submit_ns, io_ns, copy_ns, sync_ns, CASE WHEN closed_rows > failed_rows THEN bytes END AS bytes, tokens,
    queued_rows, coalesce(closed_rows, 0) AS closed_rows, coalesce(failed_rows, 0) AS failed_rows, reason,
    restore_estimate_ns, recompute_estimate_ns, pinned, numa, device_numa, seq
FROM base LEFT JOIN closing USING (stream_id, op) LEFT JOIN part USING (stream_id, op) LEFT JOIN estimate USING (stream_id, op)
"""
"""One row an op: one hop of one transfer."""

OPEN_ROWS: Final = """
WITH queued AS (
    SELECT event.stream_id, event.seq, event.t_ns, event.kind, event.op, event.block, event.req, event.src, event.dst,
        event.prefetch, event.ns
    FROM window_events AS event JOIN window_ops AS own ON own.stream_id = event.stream_id AND own.op = event.op
    WHERE event.kind IN (kind_no('swap_in_queued'), kind_no('swap_out_queued')) AND own.closed_rows < own.queued_rows
), closed AS (
    SELECT DISTINCT stream_id, op, block, req, dst, t_ns FROM window_events
    WHERE kind IN (kind_no('swap_in_loaded'), kind_no('swap_in_failed'), kind_no('swap_out_written'),
        kind_no('swap_out_failed'),
        kind_no('swap_out_skipped')) AND EXISTS (SELECT 1 FROM queued)
)
SELECT stream_id, seq, t_ns AS queued_ns, kind = kind_no('swap_in_queued') AS is_load, op, block, req, prefetch, ns, src, dst,
    greatest(src, dst) AS tier
FROM queued WHERE NOT EXISTS (
    SELECT 1 FROM closed WHERE closed.stream_id = queued.stream_id AND closed.dst = queued.dst AND closed.t_ns >= queued.t_ns
        AND closed.block IS NOT DISTINCT FROM queued.block
        AND (closed.op = queued.op OR (queued.block IS NOT NULL AND closed.req IS NOT DISTINCT FROM queued.req))
)
"""
"""Rows of transfers that began and were never closed. Files by hand may leave out ops: then the block joins both ends."""

PREFETCHES: Final = """
SELECT stream_id, prefetch, block,
    min(t_ns) FILTER (kind = kind_no('prefetch_issued')) AS issued_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_completed')) AS completed_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_ready')) AS ready_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_used')) AS used_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_wasted')) AS wasted_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_cancelled')) AS cancelled_ns,
    min(t_ns) FILTER (kind = kind_no('prefetch_deadline_missed')) AS missed_ns,
    max(reason) FILTER (kind = kind_no('prefetch_wasted')) AS wasted_reason,
    min(deadline_ns) AS deadline_ns, max(bytes) AS bytes, min(src) AS src, min(dst) AS dst,
    min(req) FILTER (kind = kind_no('prefetch_issued')) AS issuer,
    min(req) FILTER (kind = kind_no('prefetch_used')) AS user_req,
    min(ns) AS ns, min(seq) AS seq
FROM window_events WHERE kind BETWEEN kind_no('prefetch_issued') AND kind_no('prefetch_cancelled') AND prefetch IS NOT NULL
    AND kind <> kind_no('prefetch_skipped')
GROUP BY stream_id, prefetch, block
"""
"""One row a prefetched block, from its issue to its one outcome."""

REQUESTS: Final = """
SELECT stream_id, req, min(ns) AS ns, min("text") AS label,
    min(t_ns) FILTER (kind = kind_no('request_arrived')) AS arrived_ns,
    min(t_ns) FILTER (kind = kind_no('request_admitted')) AS admitted_ns,
    min(t_ns) FILTER (kind = kind_no('request_first_token')) AS first_token_ns,
    min(t_ns) FILTER (kind IN (kind_no('request_finished'), kind_no('request_cancelled'),
        kind_no('request_rejected'))) AS ended_ns,
    max(tokens) FILTER (kind = kind_no('request_arrived')) AS prompt_tokens,
    max(deadline_ns) AS deadline_ns, min(seq) AS seq
FROM window_events WHERE kind BETWEEN kind_no('request_arrived') AND kind_no('request_rejected') AND req IS NOT NULL
GROUP BY stream_id, req
"""
"""One row a request."""

STEPS: Final = """
SELECT stream_id, step, min(t_ns) FILTER (kind = kind_no('step_started')) AS started_ns,
    max(t_ns) FILTER (kind = kind_no('step_finished')) AS finished_ns,
    max(tokens) AS tokens, max(prefill_tokens) AS prefill_tokens, max(decode_tokens) AS decode_tokens,
    max(device_ns) AS device_ns, min(seq) AS seq
FROM window_events WHERE kind IN (kind_no('step_started'), kind_no('step_finished')) AND step IS NOT NULL
GROUP BY stream_id, step
"""
"""One row a step of the scheduler."""

STREAMS: Final = """
SELECT stream_id, count(*) AS events, min(t_ns) AS first_ns, max(t_ns) AS last_ns, max(seq) AS last_seq
FROM window_events GROUP BY stream_id
"""
"""One row a stream: how long it was heard."""

MARKS: Final = f"""
SELECT stream_id, wall_ns - monotonic_ns AS offset_ns FROM stream_marks
WHERE error_ns BETWEEN 0 AND {SAME_NS} AND wall_ns BETWEEN 0 AND {MOST_NS} AND monotonic_ns BETWEEN 0 AND {MOST_NS}
"""  # noqa: S608 - numbers of ours
"""One row a stream of which it is known what makes its clock the time of day."""
NO_MARKS: Final = "SELECT 0 AS stream_id, 0::BIGINT AS offset_ns WHERE false"
"""The same where nothing is known of that."""

CLOCKS: Final = f"""
WITH placed AS (
    SELECT stream_id, engine, epoch, rank, first_ns, last_ns, offset_ns,
        CASE WHEN offset_ns IS NULL THEN epoch END AS run, coalesce(offset_ns, first_ns) AS place_ns,
        CASE WHEN offset_ns IS NULL THEN {BEGUN_NS} ELSE {SAME_NS} END AS apart_ns
    FROM window_streams JOIN streams USING (stream_id) LEFT JOIN window_marks USING (stream_id)
), begun AS (
    SELECT *, coalesce(place_ns - lag(place_ns) OVER alike > apart_ns, true) AS is_other FROM placed
    WINDOW alike AS (PARTITION BY engine, run ORDER BY place_ns, stream_id)
)
SELECT stream_id, engine, epoch, rank, first_ns, last_ns, offset_ns,
    sum(is_other::INTEGER) OVER (ORDER BY engine, run, place_ns, stream_id)::BIGINT AS clock
FROM begun
"""  # noqa: S608 - numbers of ours
"""One row a stream: its clock, which it may share with others of its engine, and how long it was heard: see `one_clock.py`."""

RETURNS: Final = """
WITH gone AS (
    SELECT stream_id, seq, t_ns, block, tier, reason, ns, cause FROM window_events WHERE kind = kind_no('evicted')
        AND reason IN (reason_no('capacity'), reason_no('quota'), reason_no('prefetch_room'))
        AND (reason = reason_no('prefetch_room') OR block IN (SELECT block FROM window_events
            WHERE kind = kind_no('evicted') GROUP BY block HAVING count(*) > 1))
), back AS (
    SELECT stream_id, t_ns, block, kind, coalesce(dst, tier) AS tier FROM window_events
    WHERE kind IN (kind_no('swap_in_loaded'), kind_no('block_created')) AND block IN (SELECT block FROM gone)
)
SELECT gone.stream_id, gone.seq, gone.t_ns AS evicted_ns, gone.block, gone.tier, gone.reason, gone.ns, gone.cause,
    back.t_ns AS back_ns, back.kind AS back_kind
FROM gone ASOF LEFT JOIN back
    ON back.stream_id = gone.stream_id AND back.block = gone.block AND back.tier = gone.tier AND back.t_ns >= gone.t_ns
"""
"""One row an eviction for room, with the moment at which the same block was back in the same tier.

Blocks that were evicted only once are left out, unless that was for a prefetch: they are most, and nobody asks for them.
"""

STALE_READS: Final = """
WITH gone AS (
    SELECT stream_id, seq, t_ns, kind, reason, block, tier, slot FROM window_events
    WHERE kind IN (kind_no('evicted'), kind_no('invalidated'))
), pair AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.req, own.ns, own.block, own.tier, own.slot, max(gone.seq) AS gone_seq,
        arg_max(gone.kind, gone.seq) AS gone_kind, arg_max(gone.reason, gone.seq) AS gone_reason,
        arg_max(gone.t_ns, gone.seq) AS gone_ns
    FROM window_events AS own JOIN gone USING (stream_id, block, tier, slot)
    WHERE own.kind = kind_no('attention_read') AND gone.seq < own.seq GROUP BY ALL
)
SELECT * FROM pair WHERE gone_ns <= t_ns AND NOT EXISTS (
    SELECT 1 FROM window_events AS fill WHERE fill.kind IN (kind_no('block_created'), kind_no('swap_in_loaded'),
        kind_no('swap_out_written')) AND fill.stream_id = pair.stream_id AND fill.block = pair.block
        AND coalesce(fill.dst, fill.tier) = pair.tier AND coalesce(fill.slot, pair.slot) = pair.slot
        AND fill.seq > pair.gone_seq AND fill.seq < pair.seq
)
"""
"""One row a read of a copy that had left its place, and was not filled again before the read."""

FOREIGN_READS: Final = """
WITH made AS (
    SELECT block, ns, min(t_ns) AS t_ns FROM window_events WHERE kind = kind_no('block_created') AND ns IS NOT NULL
        AND (SELECT count(DISTINCT ns) FROM window_events WHERE kind IN (kind_no('block_created'),
            kind_no('request_arrived'))) > 1
    GROUP BY block, ns
), read AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.req, own.block, own.tier, coalesce(request.ns, own.ns) AS ns
    FROM window_events AS own LEFT JOIN window_requests AS request
        ON request.stream_id = own.stream_id AND request.req = own.req
    WHERE own.kind = kind_no('attention_read') AND own.block IN (SELECT block FROM made)
)
SELECT read.*, (SELECT arg_min(made.ns, made.t_ns) FROM made WHERE made.block = read.block) AS made_ns
FROM read ANTI JOIN made ON made.block = read.block AND made.ns = read.ns WHERE read.ns IS NOT NULL
"""
"""One row a read by a namespace of a block that was only ever created in others."""

PARENTS: Final = """
WITH made AS (SELECT block FROM window_events WHERE kind = kind_no('block_created')
), orphan AS (
    SELECT own.stream_id, own.seq, own.t_ns, own.block, own.parent, own.tier FROM window_events AS own
    ANTI JOIN made ON made.block = own.parent
    WHERE own.kind = kind_no('block_created') AND own.parent IS NOT NULL
), seen AS (
    SELECT DISTINCT block FROM window_events WHERE block IN (SELECT parent FROM orphan)
        AND kind IN (kind_no('swap_in_queued'), kind_no('swap_in_loaded'), kind_no('swap_out_queued'),
            kind_no('swap_out_written'), kind_no('prefix_hit'), kind_no('attention_read'), kind_no('prefetch_issued'))
)
SELECT orphan.* FROM orphan ANTI JOIN seen ON seen.block = orphan.parent
"""
"""One row a block whose parent was never heard of, in any stream."""

TABLES: Final[dict[str, str]] = {
    "window_ops": OPS,
    "window_open": OPEN_ROWS,
    "window_prefetches": PREFETCHES,
    "window_requests": REQUESTS,
    "window_steps": STEPS,
    "window_streams": STREAMS,
    "window_clocks": CLOCKS,
    "window_returns": RETURNS,
    "window_stale_reads": STALE_READS,
    "window_foreign_reads": FOREIGN_READS,
    "window_lost_parents": PARENTS,
}
"""Every table by its name. One may name others; these are made before it."""

NEEDS: Final[dict[str, tuple[Kind, ...]]] = {
    "window_open": (Kind.SWAP_IN_QUEUED, Kind.SWAP_OUT_QUEUED),
    "window_prefetches": (Kind.PREFETCH_ISSUED, Kind.PREFETCH_USED, Kind.PREFETCH_WASTED, Kind.PREFETCH_CANCELLED),
    "window_returns": (Kind.EVICTED,),
    "window_stale_reads": (Kind.ATTENTION_READ,),
    "window_foreign_reads": (Kind.ATTENTION_READ,),
}
"""Kinds without any of which a table has no row: it is then made without a look at the events."""
