"""`HOST_TIER_TOO_BIG`: the host tier that was asked for does not fit under the memory limit that really applies."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import manifests, whole, whole_of
from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Manifests whose host tier is larger than the limit without what is in use."""
    found: list[Row] = []
    for manifest in manifests(scene):
        if is_too_big(manifest.members):
            asked, limit = whole(manifest, "host_tier_bytes"), whole(manifest, "memory_limit_bytes")
            row: Row = {"tier": Tier.HOST.value, "asked_bytes": asked, "limit_bytes": limit}
            found.append(row | {"used_bytes": whole(manifest, "memory_used_bytes") or 0, "refs": [manifest.ref]})
    return found


def is_too_big(members: Mapping[str, object]) -> bool:
    """Whether a manifest asks for more memory than there is."""
    asked, limit = whole_of(members, "host_tier_bytes"), whole_of(members, "memory_limit_bytes")
    used = whole_of(members, "memory_used_bytes") or 0
    # Use is that of the whole machine, the limit may be that of a group: only where it is smaller does it take part.
    return asked is not None and limit is not None and asked > (limit - used if used < limit else limit)


RULE: Final = Rule(
    code="HOST_TIER_TOO_BIG",
    family=Family.POOLS,
    basis=Basis.INVARIANT,
    means="The host tier is configured larger than memory: the kernel will end the engine once the tier fills.",
    check="SELECT \"text\" FROM events WHERE kind = kind_no('manifest_declared')",
    action="shrink the host tier below the limit of the control group",
    unlike="A tier that is large, and fits.",
    find=_find,
    needs=(Need((Kind.MANIFEST_DECLARED,)),),
)
