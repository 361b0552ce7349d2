"""The ledger in objects, one request at a time, beside the one in columns."""

from kvtrail_collector.facts_build import Recording
from kvtrail_collector.ledger import ledger_of
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_collector.ledger_paint import Amounts
from kvtrail_collector.ledger_parts import Label, Part

Shown = list[tuple[dict[Label, int], dict[Label, int]]]


def in_objects(recording: Recording) -> Shown:
    """Shown and hidden amounts of each request, one after the other."""
    ledgers = [ledger_of(facts) for facts in recording.requests]
    return [(_by_label(ledger.parts), _by_label(ledger.hidden)) for ledger in ledgers]


def in_columns(recording: Recording) -> Shown:
    """Shown and hidden amounts of each request, all at once."""
    found = ledgers_of(recording.columns)
    return list(zip(amounts_of(found.parts), amounts_of(found.hidden), strict=True))


def amounts_of(table: Amounts) -> list[dict[Label, int]]:
    """The rows of a table, without those that are nothing."""
    return [{label: ns for label, ns in zip(table.labels, row, strict=True) if ns} for row in table.ns.tolist()]


def _by_label(parts: tuple[Part, ...]) -> dict[Label, int]:
    """Parts by label."""
    return {Label(part.component, part.tier, part.reason): part.ns for part in parts}


__all__ = ["amounts_of", "in_columns", "in_objects"]
