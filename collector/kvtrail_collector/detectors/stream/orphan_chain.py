"""`ORPHAN_CHAIN`: blocks name a parent that was never seen, and a gap or restart before explains why."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule
from kvtrail_collector.detectors.stream.parents import orphans_where

RULE: Final = Rule(
    code="ORPHAN_CHAIN",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="The beginning of these chains was not heard: their blocks are kept with an unknown parent, and "
    "resolved if it comes.",
    check="SELECT block, parent FROM events WHERE kind = kind_no('block_created') AND parent NOT IN "
    "(SELECT block FROM events WHERE block IS NOT NULL)",
    action="none; resolve the parents when the missing part arrives",
    unlike="`PARENT_MISSING`: the stream is whole, so the producer never reported the parent.",
    find=orphans_where(is_whole=False),
    needs=(Need((Kind.BLOCK_CREATED,), ("parent",)),),
)
