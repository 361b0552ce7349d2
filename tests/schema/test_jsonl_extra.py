"""What a line keeps unread beside its event comes back as it was."""

import pytest
from kvtrail_schema.errors import JsonLinesError
from kvtrail_schema.events import StepStarted
from kvtrail_schema.identity import Epoch, Rank, StepId, Stream
from kvtrail_schema.jsonl import read_lines, write_line

HOME = Stream("e", Epoch(1), Rank(0))


def test_extra_round_trip() -> None:
    """Fields that nobody knows stand in `extra`, and read back equal."""
    event = StepStarted(seq=1, t_ns=2, step=StepId(3))
    (line,) = read_lines([write_line(HOME, event, '{"later":[1,2]}')])

    assert (HOME, event, '{"later":[1,2]}') == (line.stream, line.event, line.extra)


def test_no_extra() -> None:
    """A line without it has none."""
    (line,) = read_lines(['{"t_ms":0,"kind":"step_started"}'])

    assert line.extra is None


def test_extra_is_an_object() -> None:
    """Anything else in its place is an error that names the field."""
    with pytest.raises(JsonLinesError, match="extra"):
        list(read_lines(['{"t_ms":0,"kind":"step_started","extra":3}']))
