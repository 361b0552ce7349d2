"""`PARENT_MISSING`: blocks name a parent that the producer never reported, though its stream is whole."""

from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.rule import Basis, Family, Need, Rule
from kvtrail_collector.detectors.stream.parents import orphans_where

RULE: Final = Rule(
    code="PARENT_MISSING",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Nothing was lost, and still a parent is unknown: the producer left it out, as when it was cached already.",
    check="SELECT block, parent FROM events WHERE kind = kind_no('block_created') AND parent NOT IN "
    "(SELECT block FROM events WHERE block IS NOT NULL)",
    action="a bug of the producer: report every block of a chain",
    unlike="`ORPHAN_CHAIN`: a gap, or a restart, before the blocks.",
    find=orphans_where(is_whole=True),
    needs=(Need((Kind.BLOCK_CREATED,), ("parent",)),),
)
