"""Promises of the numbers under which labels are stored."""

from kvtrail_collector.ledger_codes import code_of, label_of
from kvtrail_collector.ledger_keeper import LedgerKeeper
from kvtrail_collector.ledger_parts import Component, Label
from kvtrail_collector.questions.requests import find_request
from kvtrail_collector.questions.rows import streams
from kvtrail_collector.questions.why import why_stored
from kvtrail_collector.testing import memory_store
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.jsonl import read_lines

from tests.collector.frames import events_batch

STORED = {
    Label(Component.CAPACITY): 0x00000,
    Label(Component.BUDGET): 0x10000,
    Label(Component.DEFERRED, None, "grammar"): 0x20006,
    Label(Component.STALLED): 0x50000,
    Label(Component.LOOKUP): 0x60000,
    Label(Component.TIER_QUEUE, "nvme"): 0x73000,
    Label(Component.STORAGE_READ, "remote"): 0xA4000,
    Label(Component.COPY, "host", "host→gpu"): 0xB2005,
    Label(Component.RECOMPUTE_PREFILL, None, "evicted"): 0xE0012,
    Label(Component.NEW_PREFILL): 0xF0000,
    Label(Component.DECODE_STEP, None, "with_prefill"): 0x100002,
    Label(Component.UNATTRIBUTED): 0x110000,
}
STORY = [
    '{"t_ms": 0, "kind": "request_arrived", "req": "r", "tokens": 8}',
    '{"t_ms": 1, "kind": "request_waiting", "req": "r", "reason": "kv_load"}',
    '{"t_ms": 1, "kind": "swap_in_queued", "op": 7, "src": "host", "dst": "gpu", "req": "r"}',
    '{"t_ms": 9, "kind": "swap_in_loaded", "op": 7, "src": "host", "dst": "gpu", "req": "r", "queue_ms": 3, "copy_ms": 5}',
    '{"t_ms": 9, "kind": "request_admitted", "req": "r"}',
    '{"t_ms": 9, "kind": "step_started", "step": 1}',
    '{"t_ms": 20, "kind": "prefill_chunk", "req": "r", "step": 1, "tokens": 8, "reason": "evicted"}',
    '{"t_ms": 20, "kind": "step_finished", "step": 1, "tokens": 8}',
    '{"t_ms": 20, "kind": "request_first_token", "req": "r"}',
]


def test_numbers_do_not_change() -> None:
    """What is stored keeps its meaning: a component joins the list at its end."""
    assert STORED == {label: code_of(label) for label in STORED}
    assert list(STORED) == [label_of(code) for code in STORED.values()]


def test_rows_for_people() -> None:
    """The view names what the ledger of a request says."""
    with memory_store() as store:
        store.submit(events_batch([line.event for line in read_lines(STORY)])).result()
        LedgerKeeper(store, SystemClock()).run_once()
        with store.read() as cursor:
            rows = cursor.execute("SELECT component, tier, reason, ns FROM request_parts WHERE ns > 0 ORDER BY ALL").fetchall()
            found = find_request(cursor, "r", None)
            assert found is not None
            told = why_stored(cursor, found, streams(cursor))

    assert told is not None
    assert sorted((part.component.value, part.tier, part.reason, part.ns) for part in told.parts) == rows
