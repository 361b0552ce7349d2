"""The pages that follow from the code: fresh, complete, and true of what is written."""

import json
import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.enums import Reason
from kvtrail_schema.events import Event, RequestWaiting
from kvtrail_schema.identity import LARGEST_ID, RequestId, Stream
from kvtrail_schema.jsonl import write_line
from kvtrail_schema.kinds import FIELDS_OF, REQUIRED_OF, Kind
from kvtrail_schema.reasons import WaitReason

from tests.packages import ROOT
from tests.strategies import events
from tools.reference import PAGES

REFERENCE = ROOT / "docs/reference"
PAGE = (REFERENCE / "events.md").read_text(encoding="utf-8")
SCHEMA = json.loads((REFERENCE / "event.schema.json").read_text(encoding="utf-8"))
STREAM = Stream("engine", 1, 0)  # type: ignore[arg-type]  # plain numbers read better here
STREAMS = st.builds(Stream, st.text(min_size=1, max_size=4), st.integers(0, LARGEST_ID), st.integers(0, 2**16 - 2))


@pytest.mark.parametrize("name", PAGES)
def test_page_is_fresh(name: str) -> None:
    """Nobody changes the code and forgets the page that describes it."""
    assert PAGES[name]() == (ROOT / name).read_text(encoding="utf-8"), f"{name} is old: run `make generate`"


def test_check_mode_agrees() -> None:
    """`tools/reference.py --check` is what `make check` asks; it runs as a plain file, without the test's path."""
    command = [sys.executable, str(ROOT / "tools/reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")

    assert done.stderr == ""
    assert done.returncode == 0


def test_every_page_is_generated() -> None:
    """The folder holds no page that a person wrote and nobody keeps true."""
    assert {ROOT / name for name in PAGES} == {path for path in REFERENCE.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_every_kind_is_described_field_by_field(kind: Kind) -> None:
    """A page that forgets a kind or a field, or prints the wrong one in bold, is a red test."""
    section = _section(kind.name.lower())
    found = set(re.findall(r"^\| (?:\*\*)?(\w+)(?:\*\*)? \| \w+ \|", section, re.MULTILINE)) - {"field"}

    assert f"Number {kind.value};" in section
    assert set(FIELDS_OF[kind]) == found
    assert REQUIRED_OF[kind] == set(re.findall(r"^\| \*\*(\w+)\*\*", section, re.MULTILINE))


def _section(name: str) -> str:
    """The text under a heading of the page of events."""
    return PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0].partition("\n## ")[0]


def test_every_column_and_reason_is_listed() -> None:
    """Whoever decodes a number by hand finds it."""
    columns = PAGE.partition("\n## Columns\n")[2].partition("\n## ")[0]

    assert [name for name in COLUMNS if f"| {name} |" not in columns] == []
    assert [reason.name for reason in Reason if f"| {reason.value} | `{reason.name.lower()}` |" not in _section("Reason")] == []


def test_schema_is_a_schema() -> None:
    """The published schema is valid JSON Schema, 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    assert {f"#/$defs/{name}" for name, definition in SCHEMA["$defs"].items() if "properties" in definition} == {
        choice["$ref"] for choice in SCHEMA["oneOf"]
    }


@given(stream=STREAMS, event=events())
def test_every_written_line_satisfies_the_schema(stream: Stream, event: Event) -> None:
    """A program in another language that trusts the schema can read whatever kvtrail writes."""
    line = json.loads(write_line(stream, event))

    _validator(line["kind"]).validate(line)


LINE: dict[str, Any] = json.loads(write_line(STREAM, RequestWaiting(req=RequestId(4), reason=WaitReason.BUDGET)))
WRONG: dict[str, dict[str, Any]] = {
    "unknown kind": LINE | {"kind": "request_slept"},
    "unknown field": LINE | {"colour": "red"},
    "field of another kind": LINE | {"step": 1},
    "reason of another kind": LINE | {"reason": "stop"},
    "reason by number": LINE | {"reason": WaitReason.BUDGET.value},
    "id past its range": LINE | {"req": 2**64 - 1},
    "negative id": LINE | {"req": -1},
    "id as text": LINE | {"req": "r1"},
    "no seq": {name: value for name, value in LINE.items() if name != "seq"},
    "no request": {name: value for name, value in LINE.items() if name != "req"},
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_lines_do_not_satisfy_the_schema(name: str) -> None:
    """The schema is no decoration: it refuses what the contract refuses."""
    whole = jsonschema.Draft202012Validator(SCHEMA)

    assert whole.is_valid(LINE)
    assert not whole.is_valid(WRONG[name])


def _validator(kind: str) -> jsonschema.Draft202012Validator:
    """What validates one kind: quicker to run, and clearer in its errors, than the choice of all kinds."""
    name = "".join(word.capitalize() for word in kind.split("_"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
