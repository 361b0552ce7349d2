"""What goes into the ring comes out of it: every kind, every value, in order, however often the ring goes round."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent import ring_layout as layout
from kvtrail_schema import events
from kvtrail_schema.clock import ManualClock
from kvtrail_schema.columns import COLUMNS, limits
from kvtrail_schema.events import Event
from kvtrail_schema.identity import RequestId, StepId
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind
from kvtrail_schema.reasons import ErrorReason

from tests.agent.rings import SMALLEST_SLOTS, any_value, as_recorded, events_in, make_ring, set_next_seq
from tests.strategies import events as any_events
from tests.strategies import numbered


@settings(max_examples=150)
@given(st.lists(any_events(), max_size=30))
def test_events_survive_the_ring(drawn: list[Event]) -> None:
    """Any sequence of events, each emitted by its method, is read equal, in order, from seq 1 without a hole."""
    given_events = [as_recorded(event) for event in drawn]
    with TemporaryDirectory() as folder:
        ring = make_ring(Path(folder))
        seqs = [ring.emit(event) for event in given_events]
        chunk = ring.take()
        ring.close()

    assert list(range(1, len(drawn) + 1)) == seqs
    assert numbered(given_events) == events_in(chunk)
    assert chunk.drops == ()


@settings(max_examples=40)
@given(st.lists(any_events(), min_size=1, max_size=60), st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_events_survive_many_rounds(drawn: list[Event], reads: list[int]) -> None:
    """As the ring and its text area go round many times, with reads of any size in between, nothing changes."""
    given_events = [as_recorded(event) for event in drawn] * 10
    found = []
    with TemporaryDirectory() as folder:
        ring = make_ring(Path(folder))
        for number, event in enumerate(given_events):
            ring.emit(event)
            if number % 20 == 19:
                found.extend(events_in(ring.take(reads[number % len(reads)])))
                found.extend(events_in(ring.take()))
        found.extend(events_in(ring.take()))
        ring.close()

    assert numbered(given_events) == found


@pytest.mark.parametrize("end", [0, 1], ids=["smallest", "largest"])
@pytest.mark.parametrize("kind", Kind)
def test_extreme_values_survive(kind: Kind, end: int, private_dir: Path) -> None:
    """The ends of every column's range are values like others: only the one beyond says "absent"."""
    fields: dict[str, Any] = {}
    for name in FIELDS_OF[kind]:
        bounds = limits(COLUMNS[name].width)
        fields[name] = any_value(kind, name) if COLUMNS[name].names or bounds is None else bounds[end]
    event = as_recorded(EVENT_OF[kind](**fields, t_ns=[-(2**63) + 1, 2**63 - 1][end]))
    ring = make_ring(private_dir)
    ring.emit(event)
    found = events_in(ring.take())
    ring.close()

    assert numbered([event]) == found


@pytest.mark.parametrize("kind", Kind)
def test_absent_fields_stay_absent(kind: Kind, private_dir: Path) -> None:
    """An event with its required fields alone comes out with those alone."""
    required = {name: any_value(kind, name) for name in REQUIRED_OF[kind]}
    event = as_recorded(EVENT_OF[kind](**required, t_ns=5))
    ring = make_ring(private_dir)
    ring.emit(event)
    found = events_in(ring.take())
    ring.close()

    assert numbered([event]) == found


TEXTS = ["", "a", "größer als ASCII: 漢字 🚀", "x" * 2048, "\0 and \n", "…" * 600]


@pytest.mark.parametrize("text", TEXTS, ids=["empty", "short", "utf8", "half the area", "control", "multi-byte"])
def test_texts_survive(text: str, private_dir: Path) -> None:
    """A text up to half of the area comes out as it went in, wherever in the area it lands, over and over."""
    ring = make_ring(private_dir)
    found = []
    for _ in range(50):
        ring.writer.error(ErrorReason.IO, text=text)
        found.extend(events_in(ring.take()))
    ring.close()

    assert len(found) == 50
    assert {text or None} == {event.text for event in found if isinstance(event, events.Error)}


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=400), min_size=1, max_size=60))
def test_texts_of_any_length_go_round_the_area(texts: list[str]) -> None:
    """Texts that do not divide the area leave its end unused and begin anew, and none is mixed with another."""
    found = []
    with TemporaryDirectory() as folder:
        ring = make_ring(Path(folder))
        for text in texts:
            ring.writer.error(ErrorReason.IO, text=text)
            found.extend(events_in(ring.take()))
        ring.close()

    assert [text or None for text in texts] == [event.text for event in found if isinstance(event, events.Error)]


def test_time_is_taken_by_the_recorder_unless_given(private_dir: Path) -> None:
    """`t_ns` is the recorder's clock at emit; a caller's own time, 0 and negative ones too, stands as given."""
    clock = ManualClock(monotonic_ns=111)
    ring = make_ring(private_dir, clock=clock)
    ring.writer.step_started(StepId(1))
    clock.advance(5)
    ring.writer.step_started(StepId(2))
    ring.writer.step_started(StepId(3), t_ns=0)
    ring.writer.step_started(StepId(4), t_ns=-7)
    found = ring.take().table["t_ns"].to_pylist()
    ring.close()

    assert found == [111, 116, 0, -7]


def test_an_impossible_time_does_not_spoil_its_batch(private_dir: Path) -> None:
    """The one number that no `t_ns` should be stays a number: no row of a batch is without its time."""
    ring = make_ring(private_dir)
    ring.writer.step_started(StepId(1), t_ns=int("-9223372036854775808"))
    ring.writer.step_started(StepId(2), t_ns=9)
    found = ring.take().table["t_ns"].to_pylist()
    ring.close()

    assert found == [-(2**63), 9]


def test_nothing_is_read_twice(private_dir: Path) -> None:
    """A released chunk is gone; one that was read and not released comes again."""
    ring = make_ring(private_dir)
    ring.writer.request_admitted(RequestId(1))
    unreleased = ring.reader.read(10)
    again = ring.take()
    after = ring.take()
    ring.close()

    assert [1] == unreleased.table["seq"].to_pylist() == again.table["seq"].to_pylist()
    assert after.is_empty
    assert after.first_seq == 2


@pytest.mark.parametrize("border", [1 << 30, 1 << 31, 1 << 32, 5 << 30])
def test_long_lives_do_not_confuse_commit_words(border: int, private_dir: Path) -> None:
    """Billions of events on, where the commit word begins anew, events are read as ever and `produced` is right."""
    ring = make_ring(private_dir)
    set_next_seq(ring, border - 10)
    for step in range(20):
        ring.writer.step_started(StepId(step))
    highest = ring.reader.highest_seq()
    chunk = ring.take()
    ring.close()

    assert border + 9 == highest
    assert list(range(border - 10, border + 10)) == chunk.table["seq"].to_pylist()


def test_a_zeroed_slot_is_never_a_record(private_dir: Path) -> None:
    """The packer zeroes a slot before it fills it: at no seq may that look like a finished record."""
    ring = make_ring(private_dir)
    set_next_seq(ring, 1 << 30)
    seq = ring.lose_seq()
    chunk = ring.take()
    highest = ring.reader.highest_seq()
    ring.close()

    assert seq & layout.COMMIT_MASK == 0
    assert chunk.is_empty
    assert seq - 1 == highest


def test_a_batch_is_ready_across_the_end_of_the_ring(private_dir: Path) -> None:
    """Whether a batch is there does not depend on where in the ring it lies, nor on drops in front of it."""
    ring = make_ring(private_dir)
    for step in range(SMALLEST_SLOTS - 5):
        ring.writer.step_started(StepId(step))
    ring.take()
    for step in range(9):
        ring.writer.step_started(StepId(step))
    nine_there = ring.reader.is_ready(10)
    ring.writer.step_started(StepId(9))
    ten_there = ring.reader.is_ready(10)
    ring.close()

    assert (nine_there, ten_there) == (False, True)
