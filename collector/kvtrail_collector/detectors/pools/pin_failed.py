"""`PIN_FAILED`: host memory could not be pinned."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule

_QUESTION: Final = """
SELECT coalesce(tier, tier_no('host')) AS tier, count(*) AS failures, 'host memory' AS memory, any_value("text") AS detail,
    min(t_ns) - any_value(first_ns) AS after_start_ns, 0 AS touched_ns, refs_of(stream_id, seq) AS refs
FROM window_events JOIN window_streams USING (stream_id)
WHERE kind = kind_no('error') AND reason = reason_no('pin_failed') GROUP BY stream_id, coalesce(tier, tier_no('host'))
"""

RULE: Final = Rule(
    code="PIN_FAILED",
    family=Family.POOLS,
    basis=Basis.INVARIANT,
    means="The host refused to pin as much memory as was asked for: a limit on locked memory, or one request too large.",
    check="SELECT t_ns, \"text\" FROM events WHERE kind = kind_no('error') AND reason = reason_no('pin_failed')",
    action="raise the limit on locked memory (`ulimit -l`), or pin in parts; until then go on without the host tier",
    unlike="The GPU being out of memory: this is about the host's.",
    question=_QUESTION,
    triggers=(Kind.ERROR,),
)
