"""Which code is the more specific word for what another says: where both stand on the same events, the specific one stands."""

from typing import Final

GENERAL_OF: Final[dict[str, frozenset[str]]] = {
    "OFFLOAD_NOT_PAYING": frozenset({"TIER_SLOW"}),
}
"""For a code, the more general ones that it takes the place of."""
