"""Every import format keeps the same promises, whatever its records hold."""

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent.importers.decoded import Decoded
from kvtrail_agent.importers.formats import FORMATS
from kvtrail_agent.importers.numbering import Numbered, Numbering
from kvtrail_schema.arrow_schema import events_of, table_of
from kvtrail_schema.jsonl import read_lines, write_line
from kvtrail_schema.kinds import kind_of

from tests.attach.importers.cases import CASES, SECRETS, SOURCE, Case

BY_FORMAT = {case.format: case for case in CASES}
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.format)


def decoded(case: Case, records: Iterable[Any]) -> list[Decoded]:
    """What records become, the decoder's end included."""
    decoder = FORMATS[case.format].open(SOURCE)
    return [*(decoder.decode(record, case.sequence) for record in records), decoder.finish()]


def numbered(answers: Iterable[Decoded]) -> list[Numbered]:
    """The rows of answers in their streams."""
    numbering = Numbering("test")
    return [row for answer in answers for part in answer.parts for row in numbering.number(part)]


def lines(answers: Iterable[Decoded]) -> list[str]:
    """The rows of answers as JSON Lines: refuses a value that is out of its field's range."""
    return [write_line(row.stream, row.event, row.extra) for row in numbered(answers)]


def test_every_format_has_a_case() -> None:
    """A format without a sample here keeps no promise."""
    assert set(FORMATS) == set(BY_FORMAT)


@each_case
def test_the_sample(case: Case) -> None:
    """The sample is read whole: its events by the source's names, the rows by ours, nothing unknown, nothing broken."""
    answers = decoded(case, case.records)
    kinds = Counter(kind_of(row.event).name.lower() for row in numbered(answers))

    assert [] == [bad for answer in answers for bad in answer.bad]
    assert {} == sum((answer.unknown for answer in answers), Counter())
    assert case.seen == sum((answer.seen for answer in answers), Counter())
    assert case.kinds == kinds


@each_case
def test_rows_are_events(case: Case) -> None:
    """Every row fits its columns: it comes back equal from a table and from a line."""
    rows = numbered(decoded(case, case.records))
    events = [row.event for row in rows]

    assert events == events_of(table_of(events))
    assert events == [line.event for line in read_lines(write_line(row.stream, row.event, row.extra) for row in rows)]


@each_case
def test_seqs_have_no_holes(case: Case) -> None:
    """In every stream each seq is a row, or in a range that is declared as dropped."""
    for stream, last in _last_seqs(case).items():
        rows = [row.event for row in numbered(decoded(case, case.records)) if row.stream == stream]
        told = {row.seq for row in rows}
        for row in rows:
            told |= set(range(getattr(row, "first_seq", 1), getattr(row, "last_seq", 0) + 1))

        assert set(range(1, last + 1)) == told


def _last_seqs(case: Case) -> dict[Any, int]:
    """The highest seq of each stream of a case."""
    return {row.stream: row.event.seq for row in numbered(decoded(case, case.records))}


@each_case
def test_the_same_twice(case: Case) -> None:
    """The same records become the same rows in the same streams: so what is stored is not stored twice."""
    assert numbered(decoded(case, case.records)) == numbered(decoded(case, copy.deepcopy(case.records)))


@each_case
def test_nothing_in_clear(case: Case) -> None:
    """No tenant, name or token of the sample stands in any row."""
    text = "\n".join(lines(decoded(case, case.records)))

    assert [] == [secret for secret in SECRETS if secret in text]


@each_case
@pytest.mark.parametrize("record", [None, 3, "x", [], {}, {"a": {"b": [1]}}], ids=repr)
def test_no_record_of_the_format(case: Case, record: object) -> None:
    """What is no record at all is one quarantined thing with a reason; the record behind it is read."""
    answers = decoded(case, [record, case.sentinel])

    assert 1 == len(answers[0].bad)
    assert answers[0].bad[0].problem
    assert answers[1].rows
    assert [] == answers[1].bad


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["stored", "BlockStored", "removed", "l1", "1e400", "-1", "\udce4"])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=5
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a record, from the outside in."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in inner for place in places(one, (*path, name)))]


def changed(record: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A record with another value at a place."""
    if not place:
        return value
    whole = copy.deepcopy(record)
    inner = whole
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return whole


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Case, list[Any]]:
    """A sample with up to three values replaced by anything, a field added, and perhaps a record that comes twice."""
    case = draw(st.sampled_from(CASES))
    records = list(case.records)
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(records) - 1))
        place = draw(st.sampled_from(places(records[index])))
        records[index] = changed(records[index], place, draw(JSON))
    if draw(st.booleans()):
        index = draw(st.integers(0, len(records) - 1))
        records.insert(index, {**records[index], "a later field": draw(JSON)} if isinstance(records[index], dict) else None)
    return case, records


@given(mutations())
@settings(max_examples=150, deadline=None)
def test_mutated_samples(mutation: tuple[Case, list[Any]]) -> None:
    """No change of any value makes a decoder raise or write a row that is no event; a good record behind it is read."""
    case, records = mutation
    answers = decoded(case, [*records, case.sentinel])

    assert answers[-2].rows
    assert [] == answers[-2].bad
    assert len(numbered(answers)) == len(list(read_lines(lines(answers))))


@given(st.lists(JSON, max_size=4), st.sampled_from(CASES))
@settings(max_examples=100, deadline=None)
def test_any_json(records: list[Any], case: Case) -> None:
    """Records that are anything at all: nothing is raised, each is in rows or in the quarantine, and the good one is read."""
    answers = decoded(case, [*records, case.sentinel])

    assert answers[-2].rows
    assert all(answer.bad or answer.rows for answer in answers[: len(records)])
