"""`HASH_SEED_MISMATCH`: workers hash with different seeds: all store, and none ever hits."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import manifests
from kvtrail_collector.detectors.rule import Basis, Family, Need, Row, Rule, Threshold
from kvtrail_collector.detectors.scene import Scene

_WORKERS: Final = """
WITH stored AS (
    SELECT stream_id, count(*) AS blocks, sum(bytes) AS bytes, min(seq) AS seq FROM window_events
    WHERE kind = kind_no('swap_out_written') AND dst = tier_no('remote') GROUP BY stream_id
), asked AS (
    SELECT stream_id, count(*) AS lookups, sum(coalesce(tokens_remote, 0)) AS hits FROM window_events
    WHERE kind = kind_no('lookup_finished') GROUP BY stream_id
)
SELECT stream_id, stored.blocks, stored.bytes, lookups, hits, seq FROM stored JOIN asked USING (stream_id)
"""


def _find(scene: Scene, settings: Mapping[str, float]) -> list[Row]:
    """Two workers at least that store to one remote tier without a hit, and declare different seeds."""
    workers = [row for row in scene.ask(_WORKERS) if int(str(row["blocks"])) >= settings["blocks"]]
    seeds = {one.stream_id: str(one.members["hash_seed"]) for one in manifests(scene) if "hash_seed" in one.members}
    declared = {seeds[int(str(row["stream_id"]))] for row in workers if int(str(row["stream_id"])) in seeds}
    hits = sum(int(str(row["hits"])) for row in workers)
    if len(workers) < 2 or hits or len(declared) < 2:  # noqa: PLR2004 - a difference needs two
        return []
    figures: Row = {
        "tier": Tier.REMOTE.value,
        "workers": len(workers),
        "seeds": len(declared),
        "blocks_stored": sum(int(str(row["blocks"])) for row in workers),
        "lookups": sum(int(str(row["lookups"])) for row in workers),
        "hits": 0,
    }
    return [figures | {"refs": [{"stream": row["stream_id"], "seq": row["seq"]} for row in workers[:5]]}]


RULE: Final = Rule(
    code="HASH_SEED_MISMATCH",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="Equal content gets different hashes on different workers: the shared tier fills, and nothing in it is ever found.",
    check="SELECT \"text\" FROM events WHERE kind = kind_no('manifest_declared')",
    action="give all workers the same hash seed",
    unlike="Prompts that are all different: then there is nothing to hit, with one seed as well.",
    find=_find,
    needs=(Need((Kind.MANIFEST_DECLARED,)), Need((Kind.LOOKUP_FINISHED,))),
    triggers=(Kind.SWAP_OUT_WRITTEN,),
    thresholds=(Threshold("blocks", 20, "blocks", "how many each worker must have stored"),),
)
