"""The one Arrow schema of events: every pinned column, nullable, in the order of `columns.py`.

Types are pinned, never inferred: two batches whose types depended on which columns happen to be null could not be
merged.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
import pyarrow as pa

from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.events import Event
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, Kind, kind_of

_TYPES: Final[dict[Width, pa.DataType]] = {
    Width.U8: pa.uint8(),
    Width.U16: pa.uint16(),
    Width.U32: pa.uint32(),
    Width.U64: pa.uint64(),
    Width.I16: pa.int16(),
    Width.I64: pa.int64(),
    Width.F64: pa.float64(),
    Width.BOOL: pa.bool_(),
    Width.TEXT: pa.utf8(),
    Width.TRACE: pa.utf8(),
}

EXTRA: Final = "extra"
"""Holds, as JSON, what a newer sender wrote into columns that this version does not know."""

EVENT_SCHEMA: Final = pa.schema([pa.field(column.name, _TYPES[column.width]) for column in COLUMNS.values()])


def table_of(events: Iterable[Event]) -> pa.Table:
    """Events as a table with all pinned columns. Costs about 10 µs an event: for tests, imports and files."""
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    for event in events:
        kind = kind_of(event)
        own = FIELDS_OF[kind]
        for name, values in columns.items():
            values.append(getattr(event, name) if name in own or name in {"seq", "t_ns"} else None)
        columns["kind"][-1] = kind
    arrays = [pa.array(columns[field.name], type=field.type) for field in EVENT_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=EVENT_SCHEMA)


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event that this version cannot type: a newer kind, field or enum value. Kept, counted, never fatal."""

    seq: int
    t_ns: int
    kind: int
    fields: dict[str, object]
    problem: str


def events_of(table: pa.Table) -> list[Event | UnknownEvent]:
    """The rows of a table as events. The inverse of `table_of`; columns beyond the pinned ones are not looked at."""
    rows = table.select(EVENT_SCHEMA.names).to_pylist()
    return [_event_of(row) for row in rows]


def _event_of(row: dict[str, object]) -> Event | UnknownEvent:
    """One row as its event, or as an unknown one with the reason."""
    number = int(str(row.pop("kind")))
    present = {name: value for name, value in row.items() if value is not None}
    try:
        kind = Kind(number)
        strange = present.keys() - FIELDS_OF[kind] - {"seq", "t_ns"}
        if strange:
            problem = f"{kind.name.lower()} has no field {', '.join(sorted(strange))}"
        else:
            return msgspec.convert(present, EVENT_OF[kind], strict=True)
    except (ValueError, msgspec.ValidationError) as error:
        problem = str(error)
    return UnknownEvent(
        seq=int(str(present.pop("seq"))), t_ns=int(str(present.pop("t_ns"))), kind=number, fields=present, problem=problem
    )
