"""`MALFORMED`: events contradict themselves."""

from collections.abc import Mapping
from typing import Final

from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import manifests, whole
from kvtrail_collector.detectors.rule import Basis, Family, Row, Rule
from kvtrail_collector.detectors.scene import Scene

_TOO_LONG: Final = """
SELECT tier, count(*) AS events, max(tokens) AS most_tokens, $block_tokens AS block_tokens, 'tokens of a block' AS what,
    refs_of(stream_id, seq) AS refs
FROM window_events WHERE stream_id = $stream AND kind = kind_no('block_created') AND tokens > $block_tokens GROUP BY tier
"""
_BACKWARDS: Final = """
SELECT count(*) AS events, 'a range of seqs that ends before it begins' AS what, refs_of(stream_id, seq) AS refs
FROM window_events WHERE kind = kind_no('events_dropped') AND (last_seq < first_seq OR "count" > last_seq - first_seq + 1)
GROUP BY stream_id
"""


def _find(scene: Scene, _settings: Mapping[str, float]) -> list[Row]:
    """Blocks with more tokens than a block holds, and declarations that cannot be."""
    found = scene.ask(_BACKWARDS) if Kind.EVENTS_DROPPED.value in scene.kinds else []
    for manifest in manifests(scene):
        size = whole(manifest, "block_tokens") or whole(manifest, "block_size")
        if size:
            found += scene.ask(_TOO_LONG, {"stream": manifest.stream_id, "block_tokens": size})
    return found


RULE: Final = Rule(
    code="MALFORMED",
    family=Family.STREAM,
    basis=Basis.INVARIANT,
    means="A producer sends events that cannot be true; what is computed from them is not either.",
    check="SELECT reason, count(*) FROM quarantine GROUP BY reason",
    action="quarantine them; a bug of the producer",
    unlike="`SCHEMA_UNKNOWN`: events of a newer version, which are kept.",
    find=_find,
)
