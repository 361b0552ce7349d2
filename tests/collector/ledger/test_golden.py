"""The golden ledgers: small stories of one request, and where each of their milliseconds belongs.

1 to 10 are those of the design. Then: preempted, backpressure, limit and grammar, a wait that names its op, ops that
share an end, a prefetch still on its way when it is used, censored, two queues, every part of an op, no closing event.
"""

import json
from pathlib import Path

import pytest
from kvtrail_collector.facts_build import facts_of, recording_of_events
from kvtrail_collector.ledger import Ledger, ledger_of
from kvtrail_collector.ledger_columns import ledgers_of
from kvtrail_collector.ledger_paint import Amounts
from kvtrail_collector.ledger_parts import Part
from kvtrail_schema.identity import RequestId
from kvtrail_schema.jsonl import id_of, read_file

GOLDEN = Path(__file__).parent / "golden"
STORIES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))


def ledger_of_story(name: str) -> Ledger:
    """The ledger of request `r` of a story."""
    events = [line.event for line in read_file(str(GOLDEN / f"{name}.jsonl"))]
    facts = facts_of(events, RequestId(id_of("r")))
    assert facts is not None
    return ledger_of(facts)


def shown(parts: tuple[Part, ...]) -> list[dict[str, object]]:
    """Parts as the expectations write them, in milliseconds."""
    return [
        {"component": part.component.value, "tier": part.tier, "reason": part.reason, "ms": part.ns / 1e6} for part in parts
    ]


def test_twenty_stories() -> None:
    """All golden ledgers are there: the ten of the design, and ten for the rest of its rules."""
    assert [f"{number:02}" for number in range(1, 21)] == STORIES


@pytest.mark.parametrize("name", STORIES)
def test_golden(name: str) -> None:
    """Each story gives its ledger to the nanosecond, and hides what it says."""
    expected = json.loads((GOLDEN / f"{name}.expected.json").read_text(encoding="utf-8"))
    ledger = ledger_of_story(name)

    assert expected["parts"] == shown(ledger.parts)
    assert expected["hidden"] == shown(ledger.hidden)
    assert expected["ttft_ms"] == ledger.ns / 1e6


@pytest.mark.parametrize("name", STORIES)
def test_golden_in_columns(name: str) -> None:
    """The ledgers of all requests at once say the same of each story."""
    expected = json.loads((GOLDEN / f"{name}.expected.json").read_text(encoding="utf-8"))
    found = ledgers_of(recording_of_events(line.event for line in read_file(str(GOLDEN / f"{name}.jsonl"))).columns)

    assert expected["parts"] == [part for part in columns_shown(found.parts) if part["ms"]]
    assert expected["hidden"] == [part for part in columns_shown(found.hidden) if part["ms"]]


def columns_shown(table: Amounts) -> list[dict[str, object]]:
    """The one row of a table as the expectations write it."""
    labels = zip(table.labels, table.ns[0].tolist(), strict=True)
    return [
        {"component": label.component.value, "tier": label.tier, "reason": label.reason, "ms": ns / 1e6} for label, ns in labels
    ]
