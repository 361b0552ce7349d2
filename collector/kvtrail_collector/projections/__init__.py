"""Tables computed from events, in the same transaction as the events, and computable again at any time.

Each column is merged by an operation that neither order, nor the cut into batches can change: least, greatest, or a sum
over rows that are stored exactly once. So rows may come late, and a rebuild gives the same rows.
"""

from typing import Final

from kvtrail_collector.projections.ops import OPS_PROJECTION, OpOutcome
from kvtrail_collector.projections.projection import INCOMING, Projection
from kvtrail_collector.projections.requests import REQUESTS_PROJECTION

__all__ = ["INCOMING", "PROJECTIONS", "OpOutcome", "Projection"]

PROJECTIONS: Final[tuple[Projection, ...]] = (REQUESTS_PROJECTION, OPS_PROJECTION)
