"""Which namespaces hold which content, so that a lookup that misses can say whether it met somebody else's."""

from collections import Counter

from kvtrail_schema.identity import NamespaceId

from kvtrail_engine.tiers.block import Block


class Holdings:
    """Counts the indexed copies of all tiers by content and namespace. The engine's thread only; O(1) a change."""

    def __init__(self) -> None:
        self._namespaces: dict[int, Counter[NamespaceId]] = {}

    def add(self, block: Block) -> None:
        """A copy came into an index."""
        if block.content:
            self._namespaces.setdefault(block.content, Counter())[block.ns] += 1

    def drop(self, block: Block) -> None:
        """A copy left an index."""
        held = self._namespaces.get(block.content)
        if held is None:
            return
        held[block.ns] -= 1
        if held[block.ns] <= 0:
            del held[block.ns]
        if not held:
            del self._namespaces[block.content]

    def namespaces(self, content: int) -> list[NamespaceId]:
        """Who holds this content."""
        return list(self._namespaces.get(content, ()))
