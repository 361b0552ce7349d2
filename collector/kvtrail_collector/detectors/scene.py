"""What rules are asked about: the events of a stretch of time, and tables made of them when a question names them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
from kvtrail_schema.columns import COLUMNS, Width
from kvtrail_schema.kinds import Kind

from kvtrail_collector.attribution_shapes import EventRef
from kvtrail_collector.detectors.rule import Cell, Need, Row
from kvtrail_collector.detectors.scene_names import macros, plain
from kvtrail_collector.detectors.scene_tables import MARKS, NEEDS, NO_MARKS, TABLES
from kvtrail_collector.loss_shapes import Loss

_WORD: Final = re.compile(r"\bwindow_\w+")
_PARAMETER: Final = re.compile(r"\$(\w+)")
_IDS: Final = frozenset({"ns", "req", "block", "parent", "op", "prefetch", "step", "id", "cause", "slot", "previous_epoch"})
_FEW: Final = 20_000
"""Fewer rows than these are copied."""
_DECLARED: Final = ", ".join(str(kind.value) for kind in (Kind.TIER_DECLARED, Kind.NAMESPACE_DECLARED, Kind.MANIFEST_DECLARED))
_DRILL_KINDS: Final = (Kind.FAULT_INJECTED.value, Kind.FAULT_CLEARED.value)
_DRILLS: Final = ", ".join(map(str, _DRILL_KINDS))


class Bounds(NamedTuple):
    """Which events: those in [start, end) on the clock of `t_ns`, of one engine; absent bounds are open.

    What was declared before the start is among them.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    engine: str | None = None


class Scene:
    """Runs on one thread, with a cursor of its own that knows `events` and `streams`, and `stream_marks` where there are any.
    Makes nothing but temporary tables.

    `loss` are the books of the streams; `unknown_lines` are lines of a file that name kinds of a newer version. What a
    drill injected is not in it.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, loss: Loss, bounds: Bounds | None = None, *, unknown_lines: int = 0
    ) -> None:
        self.loss: Final = loss
        self.unknown_lines: Final = unknown_lines
        self._cursor = cursor
        self._made: set[str] = set()
        self._has: dict[tuple[Kind, str], bool] = {}
        for macro in macros():
            cursor.execute(macro)
        marks = MARKS if cursor.execute(_HAS_MARKS).fetchone() else NO_MARKS
        cursor.execute(f"CREATE OR REPLACE TEMP VIEW window_marks AS {marks}")
        census = _census(cursor, bounds or Bounds())
        self.streams: Final = {row[0]: row[1:] for row in cursor.execute(_STREAMS).fetchall()}
        self.kinds: Final = {int(kind): int(count) for kind, count, _, _ in census}
        self.start_ns: Final = min((first for _, _, first, _ in census), default=0)
        self.end_ns: Final = max((last for _, _, _, last in census), default=0)
        self._tenants = {ns: _tenant(text) for ns, text in cursor.execute(_NAMESPACES).fetchall()}

    def ask(self, question: str, parameters: Mapping[str, float] | None = None) -> list[Row]:
        """The rows of an answer, by the names of its columns."""
        self._make_for(question)
        used = {name: value for name, value in (parameters or {}).items() if name in _PARAMETER.findall(question)}
        answer = self._cursor.execute(plain(question), used or None)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def table(self, question: str) -> pa.Table:
        """As `ask`, for answers of many rows."""
        self._make_for(question)
        return self._cursor.execute(plain(question)).to_arrow_table()

    @contextmanager
    def beside(self, name: str, table: pa.Table) -> Iterator[None]:
        """Let questions see a table under a name."""
        self._cursor.register(name, table)
        try:
            yield
        finally:
            self._cursor.unregister(name)

    def has(self, need: Need) -> bool:
        """Whether there is an event of one of the kinds, with one of the fields where it names any."""
        present = [kind for kind in need.kinds if kind.value in self.kinds]
        if not need.fields:
            return bool(present)
        return any(self._has_field(kind, field) for kind in present for field in need.fields)

    def tenant(self, ns: Cell) -> str | None:
        """The tenant of a namespace, as it was declared: hashed."""
        if not isinstance(ns, int):
            return None
        return self._tenants.get(ns) or f"{ns:016x}"

    def event(self, ref: object) -> EventRef | None:
        """The name of an event from what `refs_of` gave."""
        if not isinstance(ref, dict) or ref.get("stream") not in self.streams:
            return None
        engine, epoch, rank = self.streams[ref["stream"]]
        return EventRef(engine, epoch, rank, ref["seq"])

    def _has_field(self, kind: Kind, field: str) -> bool:
        """Whether any event of a kind has a field; asked of the database once."""
        if (kind, field) not in self._has:
            question = f'SELECT 1 FROM window_events WHERE kind = {kind.value} AND "{field}" IS NOT NULL LIMIT 1'  # noqa: S608 - names of ours
            self._has[kind, field] = self._cursor.execute(question).fetchone() is not None
        return self._has[kind, field]

    def _make_for(self, question: str) -> None:
        """Make the tables that a question names, and those that they name."""
        for name in dict.fromkeys(_WORD.findall(question)):
            if name in TABLES and name not in self._made:
                self._make_for(TABLES[name])
                is_empty = name in NEEDS and not any(kind.value in self.kinds for kind in NEEDS[name])
                sql = plain(TABLES[name]) + (" LIMIT 0" if is_empty else "")
                self._cursor.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
                self._made.add(name)


_HAS_MARKS: Final = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'stream_marks' AND database_name = current_database()"
_STREAMS: Final = "SELECT stream_id, engine, epoch, rank FROM streams"
_CENSUS: Final = "SELECT kind, count(*), min(t_ns), max(t_ns) FROM window_events GROUP BY kind ORDER BY kind"
_NAMESPACES: Final = f'SELECT ns, "text" FROM window_events WHERE kind = {Kind.NAMESPACE_DECLARED.value} AND ns IS NOT NULL'  # noqa: S608 - a number of ours


_COUNTED: Final = tuple(
    column.name for column in COLUMNS.values() if column.width in {Width.U64, Width.U32} and column.name not in _IDS
)
"""Columns that are added up and subtracted: made signed, so that a difference may be negative."""

_MOST: Final = 2**60
"""Larger figures cannot be true (36 years in nanoseconds), and would overflow sums: one of them must not blind a rule."""
_LATEST: Final = 2**61
"""Moments may be times of day, in nanoseconds since 1970: until 2043."""


def _census(cursor: duckdb.DuckDBPyConnection, bounds: Bounds) -> list[tuple[int, int, int, int]]:
    """Make the view of the events, and count them by kind, with the first and last moment of each.

    Terms that leave nothing out are not in the view: each costs every question as much as its own look at the kinds. Few rows
    are copied: to read the text of the view anew would cost each question more than they do.
    """
    for is_plain in (True, False):
        cursor.execute(_view(bounds, is_plain=is_plain))
        census: list[tuple[int, int, int, int]] = cursor.execute(_CENSUS).fetchall()
        if all(kind not in _DRILL_KINDS and -_MOST <= first <= last <= _LATEST for kind, _, first, last in census):
            break
    if sum(count for _, count, _, _ in census) < _FEW:
        cursor.execute("CREATE OR REPLACE TEMP TABLE window_rows AS FROM window_events")
        cursor.execute("CREATE OR REPLACE TEMP VIEW window_events AS FROM window_rows")
    return census


def _view(bounds: Bounds, *, is_plain: bool) -> str:
    """The statement that bounds the events; a view takes no parameters, so that texts are quoted here."""
    terms = ["true"] if is_plain else [f"kind NOT IN ({_DRILLS})", f"t_ns BETWEEN -{_MOST} AND {_LATEST}"]
    terms += [] if bounds.start_ns is None else [f"(t_ns >= {int(bounds.start_ns)} OR kind IN ({_DECLARED}))"]
    terms += [] if bounds.end_ns is None else [f"t_ns < {int(bounds.end_ns)}"]
    if bounds.engine is not None:
        quoted = bounds.engine.replace("'", "''")
        terms.append(f"stream_id IN (SELECT stream_id FROM streams WHERE engine = '{quoted}')")  # noqa: S608 - quoted above
    signed = ", ".join(f'CASE WHEN "{name}" <= {_MOST} THEN "{name}"::BIGINT END AS "{name}"' for name in _COUNTED)
    signed += f", CASE WHEN deadline_ns BETWEEN -{_MOST} AND {_LATEST} THEN deadline_ns END AS deadline_ns"
    columns = f"SELECT * REPLACE ({signed}) FROM events"  # noqa: S608 - names of ours
    return f"CREATE OR REPLACE TEMP VIEW window_events AS {columns} WHERE {' AND '.join(terms)}"


def _tenant(text: str | None) -> str | None:
    """The tenant in the text of a namespace; None where it names none."""
    try:
        members = json.loads(text or "{}")
    except json.JSONDecodeError:
        return None
    tenant = members.get("tenant") if isinstance(members, dict) else None
    return tenant if isinstance(tenant, str) else None
