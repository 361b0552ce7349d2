"""A line that is no event: the error names source, line and field, and no other error ever leaves the reader."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.errors import JsonLinesError
from kvtrail_schema.jsonl import FIELD_ALIASES, read_file, read_lines
from kvtrail_schema.kinds import Kind

GOOD = '{"t_ns": 0, "kind": "step_started"}'
WAITING = {"t_ns": 0, "kind": "request_waiting", "req": 1, "reason": "capacity"}

ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "no time": ({"kind": "step_started"}, "t_ns"),
    "time as text": ({"t_ms": "soon", "kind": "step_started"}, "t_ms"),
    "time that is a truth": ({"t_ms": True, "kind": "step_started"}, "t_ms"),
    "time past its range": ({"t_ns": 2**63, "kind": "step_started"}, "t_ns"),
    "time past any range": ({"t_ms": 1e308, "kind": "step_started"}, "t_ms"),
    "repeat past the range": ({"t_ns": 2**63 - 2, "kind": "step_started", "repeat": 2, "every_ms": 1}, "t_ns"),
    "no kind": ({"t_ns": 0}, "kind"),
    "unknown kind": ({"t_ns": 0, "kind": "swap_in_finished"}, "kind"),
    "kind as number": ({"t_ns": 0, "kind": 5}, "kind"),
    "field of another kind": (WAITING | {"bytes": 5}, "bytes"),
    "unknown field": (WAITING | {"colour": "red"}, "colour"),
    "missing field": ({"t_ns": 0, "kind": "request_waiting", "req": 1}, "reason"),
    "null in a needed field": (WAITING | {"reason": None}, "reason"),
    "unknown reason": (WAITING | {"reason": "boredom"}, "reason"),
    "reason of another kind": (WAITING | {"reason": "stop"}, "reason"),
    "reason as number": (WAITING | {"reason": 1}, "reason"),
    "negative id": (WAITING | {"req": -1}, "req"),
    "id past its range": (WAITING | {"req": 2**64 - 1}, "req"),
    "id as fraction": (WAITING | {"req": 1.5}, "req"),
    "id as truth": (WAITING | {"req": True}, "req"),
    "seq past its range": (WAITING | {"seq": 2**64 - 1}, "seq"),
    "seq as text": (WAITING | {"seq": "first"}, "seq"),
    "text as number": ({"t_ns": 0, "kind": "manifest_declared", "text": 5}, "text"),
    "number as text": ({"t_ns": 0, "kind": "request_finished", "req": 1, "tokens": "many"}, "tokens"),
    "number past its range": ({"t_ns": 0, "kind": "request_finished", "req": 1, "tokens": 2**32 - 1}, "tokens"),
    "float past its range": ({"t_ns": 0, "kind": "clock_stepped", "value": 10**400}, "value"),
    "block as list": ({"t_ns": 0, "kind": "evicted", "block": [1], "tier": "gpu", "reason": "capacity"}, "slot"),
    "engine as number": (WAITING | {"engine": 5}, "engine"),
    "engine without a name": (WAITING | {"engine": ""}, "engine"),
    "negative epoch": (WAITING | {"epoch": -1}, "epoch"),
    "epoch as list": (WAITING | {"epoch": []}, "epoch"),
    "rank past its range": (WAITING | {"rank": 2**16 - 1}, "rank"),
    "rank as text": (WAITING | {"rank": "first"}, "rank"),
    "repeat of none": (WAITING | {"repeat": 0}, "repeat"),
    "repeat without end": (WAITING | {"repeat": 10**9}, "repeat"),
    "repeat as truth": (WAITING | {"repeat": True}, "repeat"),
    "every as text": (WAITING | {"repeat": 2, "every_ms": "1"}, "every_ms"),
    "every past its range": (WAITING | {"repeat": 2, "every_ms": 1e308}, "every_ms"),
    "a time in two units": (WAITING | {"t_ms": 4}, "t_ms"),
    "a field under two names": ({"t_ns": 0, "kind": "prefix_hit", "req": 1, "block": 1, "blk": 2, "tier": "gpu"}, "blk"),
}


@pytest.mark.parametrize("name", ROWS)
def test_error_names_source_line_and_field(name: str) -> None:
    """Who wrote a thousand lines by hand is shown the one and the field to mend."""
    row, field = ROWS[name]

    with pytest.raises(JsonLinesError) as caught:
        list(read_lines([GOOD, json.dumps(row)], source="story.jsonl"))

    assert caught.value.source == "story.jsonl"
    assert caught.value.line == 2
    assert field == caught.value.field
    assert str(caught.value).startswith(f"story.jsonl:2: field {field!r}: ")


@pytest.mark.parametrize("text", ["{", "nonsense", "[]", "5", "null", '{"a": 1} {"b": 2}', "[" * 100_000, "\udcff"])
def test_line_that_is_no_object(text: str) -> None:
    """The error says what a line must look like; it has no field to name."""
    with pytest.raises(JsonLinesError) as caught:
        list(read_lines([text], source="story.jsonl"))

    assert caught.value.field == ""
    assert str(caught.value).startswith("story.jsonl:1: ")


def test_file_that_is_no_text_is_refused_by_line(tmp_path: Path) -> None:
    """A binary file is refused at its first line that is no UTF-8, as any other bad line."""
    path = tmp_path / "story.jsonl"
    path.write_bytes(GOOD.encode() + b"\n" + b"\xff\xfe\x00\n")

    with pytest.raises(JsonLinesError, match=":2: not text in UTF-8"):
        list(read_file(str(path)))


def test_lines_before_an_error_are_read() -> None:
    """Reading is lazy: what comes before the error has been handed out."""
    found = read_lines([GOOD, "{"])

    assert next(found).number == 1
    with pytest.raises(JsonLinesError):
        next(found)


KEYS = st.sampled_from(sorted({*COLUMNS, *FIELD_ALIASES, "engine", "epoch", "rank", "repeat", "every_ms", "t_ms", "queue_us"}))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)
KINDS = st.sampled_from([kind.name.lower() for kind in Kind])


@given(st.dictionaries(KEYS, VALUES, max_size=8), KINDS)
def test_no_line_breaks_the_reader(row: dict[str, Any], kind: str) -> None:
    """Any JSON object is an event or a `JsonLinesError`, never anything else."""
    bounded = row | {"kind": kind, "t_ns": 0} | ({"repeat": 3} if isinstance(row.get("repeat"), int) else {})

    with suppress(JsonLinesError):
        list(read_lines([json.dumps(bounded)]))
