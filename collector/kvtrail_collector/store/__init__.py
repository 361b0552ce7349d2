"""Where events are kept: one DuckDB file, one writer, and the books that make storing exactly once."""

from kvtrail_collector.store.account import Account, Incoming, Receipt
from kvtrail_collector.store.fresh import MEMORY
from kvtrail_collector.store.late_ops import last_touch, linked_requests, settle_ops, streams_with_late_ops
from kvtrail_collector.store.positions import Place, Position, Positions, Reached
from kvtrail_collector.store.quarantine import Quarantined
from kvtrail_collector.store.seal_policy import SealPolicy
from kvtrail_collector.store.store import Store
from kvtrail_collector.store.tables_alerts import ALERT_AUDIT, WEBHOOK_DEAD_LETTERS
from kvtrail_collector.store.tables_ledger import LEDGER_HOLES, REQUEST_LEDGERS
from kvtrail_collector.store.tables_verdicts import STREAM_VERDICTS, STREAM_WATCHES
from kvtrail_collector.store.touched import Touched, take_touched

__all__ = [
    "ALERT_AUDIT",
    "LEDGER_HOLES",
    "MEMORY",
    "REQUEST_LEDGERS",
    "STREAM_VERDICTS",
    "STREAM_WATCHES",
    "WEBHOOK_DEAD_LETTERS",
    "Account",
    "Incoming",
    "Place",
    "Position",
    "Positions",
    "Quarantined",
    "Reached",
    "Receipt",
    "SealPolicy",
    "Store",
    "Touched",
    "last_touch",
    "linked_requests",
    "settle_ops",
    "streams_with_late_ops",
    "take_touched",
]
