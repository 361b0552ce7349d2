"""`RANKS_MISSING`: fewer ranks report than the engine has."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import manifests, whole
from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule
from kvtrail_collector.detectors.scene import Scene

_NAMES: Final = ("ranks", "world_size", "data_parallel_size")


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """One row an engine of which a declared rank was never heard."""
    declared: dict[str, int] = {}
    refs: dict[str, object] = {}
    for manifest in manifests(scene):
        engine = scene.streams[manifest.stream_id][0]
        ranks = max((whole(manifest, name) or 0 for name in _NAMES), default=0)
        declared[engine] = max(declared.get(engine, 0), ranks)
        refs.setdefault(engine, manifest.ref)
    return [row for engine, ranks in declared.items() if (row := _row(scene, engine, ranks, refs[engine]))]


def _row(scene: Scene, engine: str, ranks: int, ref: object) -> Row | None:
    """The ranks of one engine that are missing; None where all are there."""
    heard = {rank for name, _, rank in scene.streams.values() if name == engine}
    if len(heard) >= ranks:
        return None
    missing = ", ".join(str(rank) for rank in range(ranks) if rank not in heard)
    return {"engine": engine, "declared": ranks, "heard": len(heard), "missing": missing, "refs": [ref]}


RULE: Final = Rule(
    code="RANKS_MISSING",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Some ranks of an engine are not heard at all: what is shown is a part of it.",
    check="SELECT engine, count(DISTINCT rank) FROM streams GROUP BY engine",
    action="check ports, topics and names of the ranks: two may share one",
    unlike="A rank that is silent now, and was heard before: `AGENT_DEAD`.",
    find=_find,
    needs=(Need((Kind.MANIFEST_DECLARED,)),),
)
