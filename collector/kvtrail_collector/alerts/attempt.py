"""What came of one attempt to deliver one webhook, whatever way it went."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    """What came of an attempt."""

    DELIVERED = "delivered"
    AGAIN = "again"
    """Nobody there, or busy."""
    REFUSED = "refused"
    """It will never be taken."""


class Attempt(NamedTuple):
    """What came of an attempt, in words, too; the words never hold a secret."""

    outcome: Outcome
    detail: str
