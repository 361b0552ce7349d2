"""What one transaction will write, computed before it begins, so that a failed one leaves the books untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from kvtrail_schema.identity import Stream

from kvtrail_collector.store.account import Account, Incoming, Receipt, absorb, opened, stream_of
from kvtrail_collector.store.positions import Positions

Accounts = Mapping[Stream, Account]


@dataclass(frozen=True, slots=True)
class Plan:
    """New rows of `events` (with their stream ids), the accounts after them, each batch's receipt in order, and how far
    the sources of the batches are stored with them.
    """

    before: Accounts
    after: Accounts
    rows: pa.Table | None
    receipts: tuple[Receipt, ...]
    positions: Positions = field(default_factory=dict)

    def opened(self) -> list[Account]:
        """Accounts of streams that were not known before."""
        return [account for stream, account in self.after.items() if stream not in self.before]


def make_plan(accounts: Accounts, group: Sequence[Incoming]) -> Plan:
    """Fold a group of batches, in the order in which they came, into one plan."""
    after: dict[Stream, Account] = {}
    tables: list[pa.Table] = []
    receipts: list[Receipt] = []
    for incoming in group:
        stream = stream_of(incoming.batch.header)
        account = after.get(stream) or accounts.get(stream)
        if account is None:
            next_id = 1 + len(accounts) + sum(1 for known in after if known not in accounts)
            account = opened(next_id, incoming.batch.header, incoming.received_wall_ns)
        after[stream], rows, receipt = absorb(account, incoming)
        receipts.append(receipt)
        if rows.num_rows:
            tables.append(_with_stream(rows, account.stream_id))
    before = {stream: accounts[stream] for stream in after if stream in accounts}
    return Plan(before, after, pa.concat_tables(tables) if tables else None, tuple(receipts))


def _with_stream(rows: pa.Table, stream_id: int) -> pa.Table:
    """Rows with the id of their stream before them."""
    ids = pa.repeat(pa.scalar(stream_id, pa.int32()), rows.num_rows)
    return rows.add_column(0, pa.field("stream_id", pa.int32()), ids)
