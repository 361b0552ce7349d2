"""Numbers on the wire: unique, never reused, the same in every list."""

from enum import EnumType, IntEnum

import pytest
from kvtrail_schema import enums, reasons
from kvtrail_schema.enums import Dtype, Path, Reason, Stage, Tier
from kvtrail_schema.jsonl import enum_of
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, KIND_OF, Kind, kind_of

from tests.schema.frozen_numbers import FROZEN

SUBSETS = [names for names in vars(reasons).values() if isinstance(names, EnumType) and names not in {IntEnum, Reason}]
LISTS = [Kind, Tier, Dtype, Path, Stage, Reason]


@pytest.mark.parametrize("names", SUBSETS, ids=lambda names: names.__name__)
def test_subset_carries_the_numbers_of_reason(names: type[IntEnum]) -> None:
    """One column serves all reasons: the same name has the same number whichever list it is read from."""
    expected = {member.name: member.value for member in Reason if member.name in names.__members__}

    assert expected == {name: member.value for name, member in names.__members__.items()}


def test_every_subset_is_used_and_every_reason_has_a_use() -> None:
    """No list and no number stands there without a kind that can carry it."""
    used = {names for kind in Kind if (names := enum_of(kind, "reason")) is not None}
    carried = {member.value for names in used for member in names}

    assert set(SUBSETS) == used
    assert {member.value for member in Reason} == carried


@pytest.mark.parametrize("names", [*LISTS, *SUBSETS], ids=lambda names: names.__name__)
def test_numbers_are_unique(names: type[IntEnum]) -> None:
    """No two names share a number: an alias would be lost on the wire."""
    assert len(names.__members__) == len({member.value for member in names})


@pytest.mark.parametrize("names", LISTS, ids=lambda names: names.__name__)
def test_numbers_never_change(names: type[IntEnum]) -> None:
    """Bytes written by any version that was ever released keep their meaning; lists only grow at their end."""
    frozen = FROZEN[names.__name__].split()
    start = min(member.value for member in names)
    expected = dict(zip(frozen, range(start, start + len(frozen)), strict=True))

    assert expected == {name: names[name].value for name in frozen}
    assert all(member.value >= start + len(frozen) for member in names if member.name not in frozen)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_kinds_and_classes_are_one_to_one(kind: Kind) -> None:
    """From a number to its class and back is the way home."""
    assert kind is KIND_OF[EVENT_OF[kind]]


def test_kind_of_reads_the_class() -> None:
    """`kind_of` gives the number under which an event travels."""
    event = EVENT_OF[Kind.AGENT_STARTED]()

    assert Kind.AGENT_STARTED is kind_of(event)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_place_is_no_field(kind: Kind) -> None:
    """`seq` and `t_ns` belong to the stream; the fields of a kind are its own."""
    assert not {"seq", "t_ns"} & set(FIELDS_OF[kind])


def test_every_list_is_documented_here() -> None:
    """A new closed list cannot be added without freezing its numbers."""
    found = {name for name, value in vars(enums).items() if isinstance(value, EnumType) and value is not IntEnum}

    assert found | {"Kind"} == set(FROZEN)
