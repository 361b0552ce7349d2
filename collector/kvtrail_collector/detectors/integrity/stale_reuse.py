"""`STALE_REUSE`: a block of an older version was read by requests of the new one."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.foreign_reads import foreign_reads
from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Pairs of namespaces that differ in versions alone."""
    return [pair.row for pair in foreign_reads(scene) if pair.is_version_only]


RULE: Final = Rule(
    code="STALE_REUSE",
    family=Family.INTEGRITY,
    basis=Basis.INVARIANT,
    means="After a change of model, adapter or document, content of the old version goes on being served.",
    check="SELECT ns, \"text\" FROM events WHERE kind = kind_no('namespace_declared')",
    action="invalidate the old version's blocks; put the version into the key",
    unlike="`NAMESPACE_VIOLATION`: more than a version differs.",
    find=_find,
    needs=(Need((Kind.NAMESPACE_DECLARED,)), Need((Kind.BLOCK_CREATED,), ("ns",))),
    triggers=(Kind.ATTENTION_READ,),
    evidence=Evidence.ABSENCE_EVER,
)
