"""Hypothesis strategies for events: every kind, every field, every value that the contract allows."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from kvtrail_schema.columns import COLUMNS, Width, limits
from kvtrail_schema.events import Event
from kvtrail_schema.identity import LARGEST_ID
from kvtrail_schema.jsonl import enum_of
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind

TEXTS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
"""Any text that UTF-8 can hold."""

TRACE_IDS: Final = st.binary(min_size=16, max_size=16).map(bytes.hex)


def integers_of(width: Width) -> st.SearchStrategy[int]:
    """Integers that a column of this width may hold, its ends more often than chance would have them."""
    low, high = limits(width) or (0, 0)
    return st.sampled_from([low, 0, 1, high]) | st.integers(low, high)


def values_of(kind: Kind, name: str) -> st.SearchStrategy[Any]:
    """Values that a field of a kind may hold."""
    names: type[IntEnum] | None = enum_of(kind, name)
    if names is not None:
        return st.sampled_from(names)
    width = COLUMNS[name].width
    match width:
        case Width.F64:
            return st.floats(allow_nan=False, allow_infinity=False)
        case Width.BOOL:
            return st.booleans()
        case Width.TEXT:
            return TEXTS
        case Width.TRACE:
            return TRACE_IDS
        case _:
            return integers_of(width)


def events_of_kind(kind: Kind) -> st.SearchStrategy[Event]:
    """Events of one kind that were not emitted yet: `seq` is 0."""
    needed = {name: values_of(kind, name) for name in REQUIRED_OF[kind]}
    optional = {name: values_of(kind, name) for name in FIELDS_OF[kind] if name not in needed}
    fields = st.fixed_dictionaries(needed | {"t_ns": integers_of(Width.I64)}, optional=optional)
    return fields.map(lambda values: EVENT_OF[kind](**values))


_BY_KIND: Final = {kind: events_of_kind(kind) for kind in Kind}


def events() -> st.SearchStrategy[Event]:
    """Events of any kind that were not emitted yet."""
    return st.sampled_from(Kind).flatmap(_BY_KIND.__getitem__)


@st.composite
def streams(draw: st.DrawFn, *, min_size: int = 0, max_size: int = 12) -> list[Event]:
    """Events of one stream in the order of their seqs, which ascend with or without holes."""
    drawn = draw(st.lists(events(), min_size=min_size, max_size=max_size))
    seqs = draw(st.lists(st.integers(1, LARGEST_ID), min_size=len(drawn), max_size=len(drawn), unique=True))
    return numbered(drawn, sorted(seqs))


def numbered(drawn: Iterable[Event], seqs: Iterable[int] | None = None) -> list[Event]:
    """The same events with seqs, from 1 without a hole where none are given."""
    listed = list(drawn)
    numbers = range(1, len(listed) + 1) if seqs is None else seqs
    return [msgspec.structs.replace(event, seq=seq) for event, seq in zip(listed, numbers, strict=True)]
