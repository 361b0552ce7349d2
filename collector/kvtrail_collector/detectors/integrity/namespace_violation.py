"""`NAMESPACE_VIOLATION`: a block that was computed in one namespace was read in another."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.foreign_reads import foreign_reads
from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Pairs of namespaces that differ in more than a version."""
    return [pair.row for pair in foreign_reads(scene) if not pair.is_version_only]


RULE: Final = Rule(
    code="NAMESPACE_VIOLATION",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="Cached content crossed from one tenant, adapter or salt to another. `differs_in` names the members that differ.",
    check="SELECT block, kind, ns, req FROM events WHERE kind IN (kind_no('block_created'), "
    "kind_no('attention_read')) ORDER BY block",
    action="treat it as an incident: serve from the GPU only, and mend the key of the tier",
    unlike="`HASH_COLLISION`: equal hashes, separate blocks. `STALE_REUSE`: only a version differs.",
    find=_find,
    needs=(Need((Kind.BLOCK_CREATED,), ("ns",)),),
    triggers=(Kind.ATTENTION_READ,),
    evidence=Evidence.ABSENCE_EVER,
)
