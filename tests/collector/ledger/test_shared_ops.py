"""A request may wait for a load that another one began; the wait names it, and the ledger follows the name (rule 1)."""

from kvtrail_collector.facts_build import recording_of_events
from kvtrail_collector.ledger import Ledger, ledger_of
from kvtrail_collector.ledger_parts import Component, Part
from kvtrail_schema.jsonl import read_lines

MS = 1_000_000
STORY = [
    '{"t_ms": 0, "kind": "request_arrived", "req": "first", "tokens": 8}',
    '{"t_ms": 0, "kind": "request_arrived", "req": "second", "tokens": 8}',
    '{"t_ms": 1, "kind": "request_waiting", "req": "first", "reason": "kv_load"}',
    '{"t_ms": 1, "kind": "request_waiting", "req": "second", "reason": "capacity"}',
    '{"t_ms": 1, "kind": "swap_in_queued", "op": 7, "src": "nvme", "dst": "gpu", "req": "first"}',
    '{"t_ms": 5, "kind": "swap_in_started", "op": 7, "src": "nvme", "dst": "gpu", "req": "first"}',
    '{"t_ms": 21, "kind": "swap_in_loaded", "op": 7, "src": "nvme", "dst": "gpu", "req": "first", "queue_ms": 4, "io_ms": 16}',
    '{"t_ms": 21, "kind": "copy_waited", "req": "second", "op": 7, "wait_ms": 19}',
    '{"t_ms": 21, "kind": "request_admitted", "req": "second"}',
    '{"t_ms": 21, "kind": "request_first_token", "req": "second"}',
]


def ledger_of_second(story: list[str]) -> Ledger:
    """The account of the request that began nothing."""
    lines = list(read_lines(story))
    recording = recording_of_events([line.event for line in lines], lines[0].stream)
    return ledger_of(next(facts for facts in recording.requests if facts.text == "second"))


def test_a_named_wait_is_for_the_named_load() -> None:
    """The time stood still belongs to the parts of the load that was waited for, not to noticing late."""
    ledger = ledger_of_second(STORY)

    assert ledger.parts == (
        Part(Component.CAPACITY, None, None, 2 * MS),
        Part(Component.TIER_QUEUE, "nvme", None, 3 * MS),
        Part(Component.STORAGE_READ, "nvme", None, 16 * MS),
    )


def test_an_unnamed_wait_is_for_ones_own_loads() -> None:
    """A wait without a name cannot be pinned on somebody else's load."""
    ledger = ledger_of_second([line.replace('"req": "second", "op": 7', '"req": "second"') for line in STORY])

    assert "storage_read" not in {part.component.value for part in ledger.parts}
