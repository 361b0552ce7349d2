"""The golden ledgers of the design: small stories of one request, and where each of their milliseconds belongs."""

import json
from pathlib import Path

import pytest
from kvtrail_collector.facts_build import facts_of
from kvtrail_collector.ledger import Ledger, ledger_of
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


def test_ten_stories() -> None:
    """All ten golden ledgers of the design are there."""
    assert [f"{number:02}" for number in range(1, 11)] == STORIES


@pytest.mark.parametrize("name", STORIES)
def test_golden(name: str) -> None:
    """Each story gives its ledger to the nanosecond, and hides what it says."""
    expected = json.loads((GOLDEN / f"{name}.expected.json").read_text(encoding="utf-8"))
    ledger = ledger_of_story(name)

    assert expected["parts"] == shown(ledger.parts)
    assert expected["hidden"] == shown(ledger.hidden)
    assert expected["ttft_ms"] == ledger.ns / 1e6
