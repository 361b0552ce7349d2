"""One event in full: its fields in words, the event that caused it, and the events that it caused."""

from __future__ import annotations

from typing import Final

import duckdb
import msgspec
from kvtrail_schema.columns import COLUMNS
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import EventRef
from kvtrail_collector.questions.words import kind_name

_MOST_EFFECTS: Final = 20
_DRILLS: Final = (Kind.FAULT_INJECTED.value, Kind.FAULT_CLEARED.value)
_HASHES: Final = ("block", "parent")
_HEAD: Final = ("seq", "t_ns", "kind")
_ONE: Final = """
SELECT events.*, wall_ns - monotonic_ns AS offset_ns
FROM events JOIN streams USING (stream_id) JOIN stream_marks USING (stream_id)
WHERE engine = $engine AND epoch = $epoch AND rank = $rank AND seq = $seq
"""
_NO_DRILL: Final = ", ".join(str(kind) for kind in _DRILLS)
# Each process counts its ids from one: what caused an event is of its own epoch.
_CAUSE: Final = f"""
SELECT engine, epoch, rank, seq, kind FROM events JOIN streams USING (stream_id)
WHERE engine = $engine AND epoch = $epoch AND id = $id AND kind NOT IN ({_NO_DRILL}) ORDER BY rank, seq LIMIT 1
"""  # noqa: S608  # constants of ours
_EFFECTS: Final = f"""
SELECT engine, epoch, rank, seq, kind FROM events JOIN streams USING (stream_id)
WHERE engine = $engine AND epoch = $epoch AND cause = $id AND kind NOT IN ({_NO_DRILL})
ORDER BY t_ns, rank, seq LIMIT {_MOST_EFFECTS}
"""  # noqa: S608  # a constant of ours


class Linked(msgspec.Struct, frozen=True):
    """Another event, by its name and kind."""

    event: EventRef
    kind: str


class OneEvent(msgspec.Struct, frozen=True):
    """An event; `fields` are those that it has, members of lists in words, hashes in hexadecimal, large ids as text."""

    event: EventRef
    kind: str
    t_ns: int
    wall_ns: int
    fields: dict[str, str | int | float | bool]
    cause: Linked | None
    effects: list[Linked]
    schema: int = 1


def one_event(cursor: duckdb.DuckDBPyConnection, ref: EventRef) -> OneEvent | None:
    """An event by its name; None where it is not stored, or says what a drill did. One pass over seqs, two over causes."""
    who = {"engine": ref.engine, "epoch": ref.epoch, "rank": ref.rank}
    found = cursor.execute(_ONE, {**who, "seq": ref.seq})
    names = [column[0] for column in found.description or []]
    row = found.fetchone()
    if row is None:
        return None
    values = dict(zip(names, row, strict=True))
    if values["kind"] in _DRILLS:
        return None
    cause, own = values["cause"], values["id"]
    by_id = {"engine": ref.engine, "epoch": ref.epoch}
    causes = [] if cause is None else cursor.execute(_CAUSE, {**by_id, "id": cause}).fetchall()
    effects = [] if own is None else cursor.execute(_EFFECTS, {**by_id, "id": own}).fetchall()
    return OneEvent(
        event=ref,
        kind=kind_name(values["kind"]),
        t_ns=values["t_ns"],
        wall_ns=values["t_ns"] + values["offset_ns"],
        fields={name: _told(name, values[name]) for name in COLUMNS if name not in _HEAD and values[name] is not None},
        cause=next((_linked(row) for row in causes), None),
        effects=[_linked(row) for row in effects],
    )


def _linked(row: tuple[str, int, int, int, int]) -> Linked:
    """A row as a link."""
    return Linked(EventRef(*row[:4]), kind_name(row[4]))


def _told(name: str, value: str | float | bool) -> str | int | float | bool:
    """A value as people read it: members of lists by name, hashes in hexadecimal, as text what browsers round."""
    members = COLUMNS[name].names
    if members is not None:
        return next((member.name.lower() for member in members if member.value == value), value)
    if name in _HASHES and isinstance(value, int):
        return f"{value:016x}"
    return str(value) if isinstance(value, int) and abs(value) >= 1 << 53 else value
