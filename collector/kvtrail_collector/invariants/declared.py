"""Invariants of what an engine declares at its start: `HOST_TIER_TOO_BIG`, and blocks with more tokens than a block holds."""

from __future__ import annotations

from kvtrail_schema.enums import Tier
from kvtrail_schema.kinds import Kind

from kvtrail_collector.detectors.manifests import members_of, whole_of
from kvtrail_collector.detectors.pools.host_tier_too_big import is_too_big
from kvtrail_collector.invariants.found import Found, found_at
from kvtrail_collector.invariants.rows import Rows


class Declared:
    """Holds how many tokens a block has, as the manifest said it last. Blocks of before it are not looked at."""

    codes = ("HOST_TIER_TOO_BIG", "MALFORMED")

    def __init__(self) -> None:
        self._block_tokens = 0
        self._has_many = False

    @property
    def is_sure(self) -> bool:
        """Whether only one size was ever declared."""
        return not self._has_many

    def look(self, rows: Rows) -> list[Found]:
        """Manifests that cannot hold, and blocks that cannot be."""
        found: list[Found] = []
        for place in rows.of(Kind.MANIFEST_DECLARED).tolist():
            found += self._take_in(rows, place)
        if self._block_tokens:
            blocks = rows.of(Kind.BLOCK_CREATED)
            bad = blocks[rows.numbers("tokens")[blocks] > self._block_tokens]
            found += found_at("MALFORMED", rows, bad, rows.numbers("tier")[bad], "tokens of a block")
        return found

    def _take_in(self, rows: Rows, place: int) -> list[Found]:
        """One manifest."""
        members = members_of(rows.text(place)) or {}
        size = whole_of(members, "block_tokens") or whole_of(members, "block_size") or 0
        self._has_many = self._has_many or (0 < self._block_tokens != size)
        self._block_tokens = size or self._block_tokens
        if not is_too_big(members):
            return []
        at_ns, seq = int(rows.t_ns[place]), int(rows.seq[place])
        return [Found("HOST_TIER_TOO_BIG", Tier.HOST.value, "", 1, (seq,), at_ns, at_ns)]
