"""`CLOCK_STEP`: the wall clock of a host jumped against its monotonic clock."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Rule, Threshold

_QUESTION: Final = """
SELECT engine, count(*) AS steps, arg_max("value", abs("value")) / 1e6 AS largest_step_ms, 0 AS touched_ns,
    refs_of(stream_id, seq) AS refs
FROM window_events JOIN streams USING (stream_id)
WHERE kind = kind_no('clock_stepped') AND abs("value") >= $step_ms * 1e6 GROUP BY engine
"""

RULE: Final = Rule(
    code="CLOCK_STEP",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Somebody set the clock. Durations are not touched; moments of this host and others are hard to compare around it.",
    check="SELECT t_ns, \"value\" / 1e6 FROM events WHERE kind = kind_no('clock_stepped')",
    action="let the time service slew instead of step",
    unlike="Slow drift, which every clock has.",
    question=_QUESTION,
    triggers=(Kind.CLOCK_STEPPED,),
    thresholds=(Threshold("step_ms", 100, "ms", "from which a step counts"),),
)
