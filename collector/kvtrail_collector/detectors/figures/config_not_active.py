"""`CONFIG_NOT_ACTIVE`: the manifest says that a feature is on, and no event of it is seen, though there was occasion."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import Manifest, manifests
from kvtrail_collector.detectors.rule import Basis, Evidence, Family, Need, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene


class Feature(NamedTuple):
    """What shows that a feature works, and what gives it occasion to; `tier` narrows the former."""

    signs: tuple[Kind, ...]
    occasion: Kind
    tier: Tier | None = None


_WRITES: Final = (Kind.SWAP_OUT_QUEUED, Kind.SWAP_OUT_WRITTEN, Kind.SWAP_OUT_SKIPPED, Kind.SWAP_OUT_FAILED)
FEATURES: Final[dict[str, Feature]] = {
    "prefetch": Feature((Kind.PREFETCH_ISSUED, Kind.PREFETCH_SKIPPED), Kind.SWAP_IN_QUEUED),
    "offload_host": Feature(_WRITES, Kind.EVICTED, Tier.HOST),
    "offload_nvme": Feature(_WRITES, Kind.EVICTED, Tier.NVME),
    "offload_remote": Feature(_WRITES, Kind.EVICTED, Tier.REMOTE),
    "prefix_cache": Feature((Kind.PREFIX_HIT, Kind.PREFIX_MISS, Kind.LOOKUP_FINISHED), Kind.REQUEST_ARRIVED),
}
"""Names that the member `active` of a manifest may list."""

_COUNT: Final = """
SELECT count(*) FILTER (kind = $occasion) AS occasions,
    count(*) FILTER (list_contains([$sign0, $sign1, $sign2, $sign3], kind) AND ($tier < 0 OR dst = $tier)) AS signs
FROM window_events WHERE stream_id = $stream
"""


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """A row a feature that is said to be active and never shows."""
    found: list[Row] = []
    for manifest in manifests(scene):
        active = manifest.members.get("active")
        for name in active if isinstance(active, list) else []:
            row = _row(scene, manifest, str(name), settings["occasions"])
            found += [row] if row else []
    return found


def _row(scene: Scene, manifest: Manifest, name: str, least: float) -> Row | None:
    """One feature without a sign of life; None where it has one, or had no occasion."""
    feature = FEATURES.get(name)
    if feature is None:
        return None
    signs = {f"sign{place}": feature.signs[min(place, len(feature.signs) - 1)].value for place in range(4)}
    tier = -1 if feature.tier is None else feature.tier.value
    asked = {"stream": manifest.stream_id, "occasion": feature.occasion.value, "tier": tier}
    counts = scene.ask(_COUNT, signs | asked)[0]
    occasions = int(str(counts["occasions"]))
    if int(str(counts["signs"])) or occasions < least:
        return None
    occasion = feature.occasion.name.lower()
    return {"feature": name, "occasions": occasions, "occasion": occasion, "cases": occasions, "refs": [manifest.ref]}


RULE: Final = Rule(
    code="CONFIG_NOT_ACTIVE",
    family=Family.FIGURES,
    basis=Basis.INVARIANT,
    means="A setting is set and does nothing: wrong backend, wrong version, or a condition that is never met.",
    check="SELECT \"text\" FROM events WHERE kind = kind_no('manifest_declared')",
    action="check backend, version and the conditions of the feature",
    unlike="A feature that had no occasion yet.",
    find=_find,
    needs=(Need((Kind.MANIFEST_DECLARED,)),),
    thresholds=(Threshold("occasions", 50, "events", "on which the feature should have shown"),),
    evidence=Evidence.ABSENCE_EVER,
)
