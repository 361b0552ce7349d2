"""Columns: one width and one meaning each, and a value set aside to say "absent"."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_schema import absent
from kvtrail_schema.columns import COLUMNS, Column, Width, limits, within_range
from kvtrail_schema.enums import Reason
from kvtrail_schema.jsonl import enum_of
from kvtrail_schema.kinds import FIELDS_OF, Kind

SEQ, T_NS = "seq", "t_ns"
INTEGER_WIDTHS = [width for width in Width if limits(width) is not None]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_every_field_has_a_column(kind: Kind) -> None:
    """What a kind can say, the wire can carry."""
    assert set(FIELDS_OF[kind]) <= COLUMNS.keys()


def test_every_column_is_used() -> None:
    """No column travels for nothing."""
    used = {name for fields in FIELDS_OF.values() for name in fields}

    assert COLUMNS.keys() == used | {SEQ, T_NS, "kind"}


@pytest.mark.parametrize("column", [column for column in COLUMNS.values() if column.names], ids=lambda column: column.name)
def test_numbers_of_enums_fit_their_column(column: Column) -> None:
    """No member of an enum is mistaken for "absent"."""
    assert column.names is not None
    assert all(within_range(column.name, member.value) for member in column.names)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_enums_of_fields_are_those_of_their_columns(kind: Kind) -> None:
    """A field's enum is the one that its column lists, or a subset of `Reason`."""
    found = {name: enum_of(kind, name) for name in FIELDS_OF[kind]}
    listed = {name: COLUMNS[name].names for name in FIELDS_OF[kind]}
    others = {name: names for name, names in found.items() if name != "reason"}

    assert {name: names for name, names in listed.items() if name != "reason"} == others
    assert listed.get("reason", Reason) is Reason


@pytest.mark.parametrize("width", INTEGER_WIDTHS, ids=lambda width: width.name)
def test_absent_is_the_one_value_that_a_width_gives_up(width: Width) -> None:
    """Every other value of the width is usable, and none of them reads as "absent"."""
    low, high = limits(width) or (0, 0)
    size = struct.calcsize(f"<{width.code}") * 8

    assert 2**size - 1 == high - low + 1
    assert not low <= width.absent <= high


@pytest.mark.parametrize("width", INTEGER_WIDTHS, ids=lambda width: width.name)
def test_emitters_say_absent_as_records_do(width: Width) -> None:
    """The defaults of emit methods are the values that readers of records take for "absent"."""
    assert width.absent == getattr(absent, f"NO_{width.name}")


@pytest.mark.parametrize("name", [name for name, column in COLUMNS.items() if column.width in INTEGER_WIDTHS])
def test_the_value_for_absent_is_refused(name: str) -> None:
    """Nobody can write a number that would be read as nothing."""
    assert not within_range(name, COLUMNS[name].width.absent)


@given(st.data())
def test_range_of_integers(data: st.DataObject) -> None:
    """A number is accepted exactly if its column can hold it."""
    name = data.draw(st.sampled_from([n for n, column in COLUMNS.items() if column.width in INTEGER_WIDTHS]))
    value = data.draw(st.integers(-(2**66), 2**66))
    low, high = limits(COLUMNS[name].width) or (0, 0)

    assert (low <= value <= high) is within_range(name, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_are_finite(value: float) -> None:
    """NaN means "absent" in records, and no JSON can carry an infinity."""
    assert not within_range("value", value)
    assert within_range("value", 0.5)
