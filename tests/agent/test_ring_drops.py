"""Losses are counted to the event: produced = rows + dropped, whatever did not fit or could not be written."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent import ring_layout as layout
from kvtrail_schema.identity import RequestId, StepId
from kvtrail_schema.reasons import ErrorReason

from tests.agent.rings import SMALLEST_SLOTS, SMALLEST_TEXTS, TestRing, dropped_in, make_ring, settled_seqs

ENCODE_ERROR = ("ENCODE", "ENCODE_ERROR")
FULL = ("RING", "FULL")


def read_all(ring: TestRing, most_rows: int = 1 << 20) -> tuple[list[int], list[tuple[str, str, int, int]]]:
    """Everything that lies in a ring, released: seqs that are accounted for, and the drops among them."""
    seqs: list[int] = []
    drops: list[tuple[str, str, int, int]] = []
    while not (chunk := ring.take(most_rows)).is_empty:
        seqs += settled_seqs(chunk)
        drops += dropped_in(chunk)
    return sorted(seqs), drops


def test_a_full_ring_counts_what_it_drops(private_dir: Path) -> None:
    """Events beyond the room are dropped as (ring, full), exactly those, and later ones find room again."""
    ring = make_ring(private_dir)
    for step in range(SMALLEST_SLOTS + 7):
        ring.writer.step_started(StepId(step))
    first = ring.take()
    ring.writer.step_started(StepId(99))
    second = ring.take()
    ring.close()

    assert list(range(1, SMALLEST_SLOTS + 1)) == first.table["seq"].to_pylist()
    assert dropped_in(first) == [(*FULL, SMALLEST_SLOTS + 1, SMALLEST_SLOTS + 7)]
    assert second.table["seq"].to_pylist() == [SMALLEST_SLOTS + 8]


def test_a_dropped_event_still_gets_its_seq(private_dir: Path) -> None:
    """Seqs are handed out before anything can be dropped: the loss is a hole that the books explain."""
    ring = make_ring(private_dir)
    seqs = [ring.writer.step_started(StepId(step)) for step in range(SMALLEST_SLOTS + 3)]
    ring.close()

    assert list(range(1, SMALLEST_SLOTS + 4)) == seqs


BAD_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "text for a number": ("step_started", {"step": "seven"}),
    "none for a number": ("step_started", {"step": None}),
    "float for a number": ("step_started", {"step": 1.5}),
    "negative": ("step_started", {"step": -1}),
    "65 bits": ("step_started", {"step": 1 << 64}),
    "256 in a byte": ("request_waiting", {"req": 1, "reason": 256}),
    "33 bits of tokens": ("request_finished", {"req": 1, "tokens": 1 << 32}),
    "text for a float": ("clock_stepped", {"value": "1.5"}),
    "text for a time": ("step_started", {"step": 1, "t_ns": "now"}),
    "65 bits of time": ("step_started", {"step": 1, "t_ns": 1 << 63}),
    "bytes for a text": ("manifest_declared", {"text": b"{}"}),
    "number for a text": ("manifest_declared", {"text": 7}),
    "half a character": ("manifest_declared", {"text": "\ud800"}),
    "no trace id": ("request_arrived", {"req": 1, "tokens": 1, "trace_id": "no hex"}),
    "half a trace id": ("request_arrived", {"req": 1, "tokens": 1, "trace_id": "abcd"}),
    "number for a trace id": ("request_arrived", {"req": 1, "tokens": 1, "trace_id": 7}),
}


@pytest.mark.parametrize("call", BAD_CALLS.values(), ids=BAD_CALLS)
def test_wrong_values_never_raise_and_are_counted(call: tuple[str, dict[str, Any]], private_dir: Path) -> None:
    """A value that fits no record costs its own event alone, as (encode, encode_error); the engine never hears of it."""
    method, fields = call
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1))
    seq = getattr(ring.writer, method)(**fields)
    ring.writer.manifest_declared("after")
    chunk = ring.take()
    ring.close()

    assert seq == 2
    assert dropped_in(chunk) == [(*ENCODE_ERROR, 2, 2)]
    assert chunk.table["seq"].to_pylist() == [1, 3]
    assert chunk.table["text"].to_pylist() == [None, "after"]


def test_a_refused_event_leaves_no_old_record_behind(private_dir: Path) -> None:
    """A slot whose new event was refused does not show the event that lay there a round before."""
    ring = make_ring(private_dir)
    for step in range(SMALLEST_SLOTS):
        ring.writer.step_started(StepId(step))
    ring.take()
    for _ in range(SMALLEST_SLOTS):
        ring.writer.step_started(StepId(-1))
    seqs, drops = read_all(ring)
    ring.close()

    assert list(range(SMALLEST_SLOTS + 1, 2 * SMALLEST_SLOTS + 1)) == seqs
    assert drops == [(*ENCODE_ERROR, SMALLEST_SLOTS + 1, 2 * SMALLEST_SLOTS)]


def test_a_full_text_area_drops_texts_alone(private_dir: Path) -> None:
    """Where the text area is full, events with texts are dropped and counted, those without still get through."""
    ring = make_ring(private_dir)
    half = "x" * (SMALLEST_TEXTS // 2)
    for _ in range(3):
        ring.writer.error(ErrorReason.IO, text=half)
    ring.writer.step_started(StepId(1))
    ring.writer.error(ErrorReason.IO)
    chunk = ring.take()
    ring.writer.error(ErrorReason.IO, text=half)
    after = ring.take()
    ring.close()

    assert chunk.table["seq"].to_pylist() == [1, 2, 4, 5]
    assert dropped_in(chunk) == [(*FULL, 3, 3)]
    assert [half] == after.table["text"].to_pylist()


def test_a_text_that_may_never_fit_is_too_large(private_dir: Path) -> None:
    """A text over half of the area is refused each time, not by the luck of where the area begins anew."""
    ring = make_ring(private_dir)
    for _ in range(3):
        ring.writer.error(ErrorReason.IO, text="x" * (SMALLEST_TEXTS // 2 + 1))
        ring.writer.error(ErrorReason.IO, text="x" * 100)
    seqs, drops = read_all(ring)
    ring.close()

    assert seqs == [1, 2, 3, 4, 5, 6]
    assert [("ENCODE", "TOO_LARGE", seq, seq) for seq in (1, 3, 5)] == drops


def test_more_drops_than_the_table_holds_are_all_told(private_dir: Path) -> None:
    """With more separate losses than entries the newest entry widens: every seq is still told, none of them twice."""
    count = layout.DROP_ENTRIES + 200
    ring = make_ring(private_dir, slot_count=4096)
    for number in range(count):
        ring.writer.step_started(StepId(number))
        ring.writer.step_started(StepId(-1))
    chunk = ring.take()
    ring.close()

    assert list(range(1, 2 * count + 1)) == settled_seqs(chunk)
    assert count == chunk.table.num_rows


def test_a_long_loss_is_one_range(private_dir: Path) -> None:
    """A loss over many rounds of the ring is told in one range: a header has room for few."""
    ring = make_ring(private_dir)
    for step in range(10 * SMALLEST_SLOTS):
        ring.writer.step_started(StepId(step))
    chunk = ring.take()
    ring.close()

    assert dropped_in(chunk) == [(*FULL, SMALLEST_SLOTS + 1, 10 * SMALLEST_SLOTS)]


def test_the_table_of_drops_is_used_again(private_dir: Path) -> None:
    """Entries that were read make room for later ones, round after round."""
    ring = make_ring(private_dir)
    seqs: list[int] = []
    for number in range(4 * layout.DROP_ENTRIES):
        ring.writer.step_started(StepId(number))
        ring.writer.step_started(StepId(-1))
        if number % 20 == 0:
            seqs += read_all(ring)[0]
    seqs += read_all(ring)[0]
    free = ring.file.word(layout.READ_DROPS) + layout.DROP_ENTRIES - ring.file.word(layout.WRITTEN_DROPS)
    ring.close()

    assert list(range(1, 8 * layout.DROP_ENTRIES + 1)) == seqs
    assert layout.DROP_ENTRIES - 1 == free


ACTS = st.lists(
    st.sampled_from(["event", "text", "large text", "wrong", "burst", "read", "read few"]), min_size=1, max_size=120
)


def act(ring: TestRing, what: str) -> list[int]:
    """Do one thing to a ring; the seqs that it settled."""
    if what.startswith("read"):
        return settled_seqs(ring.take(3 if what.endswith("few") else 1 << 20))
    if what == "burst":
        for step in range(40):
            ring.writer.step_started(StepId(step))
    elif what.endswith("text"):
        ring.writer.error(ErrorReason.IO, text="x" * (700 if what == "text" else 5_000))
    else:
        ring.writer.request_admitted(RequestId(5 if what == "event" else -5))
    return []


@settings(max_examples=100)
@given(ACTS)
def test_produced_is_rows_plus_drops_at_all_times(acts: list[str]) -> None:
    """Whatever mixture of events, losses and reads: each seq is settled exactly once."""
    with TemporaryDirectory() as folder:
        ring = make_ring(Path(folder))
        settled = [seq for what in acts for seq in act(ring, what)]
        produced = ring.reader.highest_seq()
        settled += read_all(ring)[0]
        ring.close()

    assert list(range(1, produced + 1)) == settled
