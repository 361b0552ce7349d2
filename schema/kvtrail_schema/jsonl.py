"""Events as JSON Lines: the form for people, for fixtures, bug reports and files written by hand (EVENTS §5).

Reading is generous with form and strict with content. Times may stand in `_ns`, `_us` or `_ms`; ids may be any text or
number; what only numbers things (`engine, epoch, rank, seq, op, slot, step`) is filled in where it is absent. A field
that its kind does not have, or a value out of its range, is an error that names file, line and field. Writing is exact:
what was written reads back equal.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

import msgspec

from kvtrail_schema.columns import within_range
from kvtrail_schema.errors import EventInvalid, JsonLinesError
from kvtrail_schema.events import Event
from kvtrail_schema.identity import LARGEST_ID, Epoch, Rank, Stream
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind, kind_of

_TIME_UNITS_NS: Final = {"_ns": 1, "_us": 1_000, "_ms": 1_000_000}
ID_FIELDS: Final = frozenset({"ns", "req", "block", "parent", "op", "prefetch", "id", "cause", "step"})
FIELD_ALIASES: Final = {
    "blk": "block",
    "par": "parent",
    "copy": "slot",
    "q_ms": "queue_ms",
    "recompute_est_ms": "recompute_estimate_ms",
}
KIND_ALIASES: Final = {
    "QUEUED": "request_arrived",
    "ADMITTED": "request_admitted",
    "FIRST_TOKEN": "request_first_token",
    "create": "block_created",
    "swap_in_issued": "swap_in_queued",
    "swap_out_issued": "swap_out_queued",
}
_DEFAULT_ENGINE: Final = "engine"
_LARGEST_REPEAT: Final = 1_000_000
_LARGEST_RANK: Final = 2**16 - 2


class Line(NamedTuple):
    """One event with the stream that it belongs to, and the number of its line."""

    stream: Stream
    event: Event
    number: int
    extra: str | None = None
    """What the line keeps unread beside the event, as JSON (EVENTS §6)."""


@dataclass
class _Numbering:
    """What fills in absent numbers while one source is read; used by one thread."""

    seqs: defaultdict[Stream, int] = field(default_factory=lambda: defaultdict(int))
    slots: dict[tuple[object, object], int] = field(default_factory=dict)
    next_op: int = 1 << 62
    step: int = 0

    def slot(self, tier: object, block: object) -> int:
        """The place of a block in a tier: the same one each time."""
        return self.slots.setdefault((tier, block), len(self.slots))

    def op(self) -> int:
        """An op of its own."""
        self.next_op += 1
        return self.next_op


def id_of(value: str | int) -> int:
    """The number of an id: numbers are themselves, texts are hashed (not keyed: files by hand hold no secrets)."""
    if isinstance(value, int):
        return value
    digest = hashlib.blake2b(value.encode(), digest_size=8, person=b"kvtrail.jsonl").digest()
    return min(int.from_bytes(digest, "little"), LARGEST_ID)


def read_lines(lines: Iterable[str], *, source: str = "<lines>") -> Iterator[Line]:
    """Events of JSON lines, in their order. Empty lines and lines that begin with `#` are skipped.

    Raises:
        JsonLinesError: a line is no event; it names source, line and field.
    """
    numbering = _Numbering()
    for number, text in enumerate(lines, start=1):
        if text.strip() and not text.lstrip().startswith("#"):
            yield from _Reader(source, number, numbering).read(text)


def read_readable(lines: Iterable[str], *, source: str = "<lines>") -> Iterator[Line | JsonLinesError]:
    """Events of JSON lines, and in the place of each line that is no event the error that says why; never raises."""
    numbering = _Numbering()
    for number, text in enumerate(lines, start=1):
        if text.strip() and not text.lstrip().startswith("#"):
            try:
                yield from _Reader(source, number, numbering).read(text)
            except JsonLinesError as error:
                yield error


def read_file(path: str) -> Iterator[Line]:
    """Events of a JSON Lines file. Raises `JsonLinesError` as `read_lines`, `OSError` where the file cannot be read."""
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123 - a path given by a person, opened as it is
        yield from read_lines(lines, source=path)


def write_line(stream: Stream, event: Event, extra: str | None = None) -> str:
    """One event as one line, without its end; exact. `extra` is JSON that is kept unread beside it.

    Raises:
        EventInvalid: a value is out of the range of its field, so that it could not be read back.
    """
    kind = kind_of(event)
    values = {name: getattr(event, name) for name in ("t_ns", *FIELDS_OF[kind])}
    wrong = next((name for name, value in values.items() if not within_range(name, value)), None)
    if wrong is not None:
        message = f"{kind.name.lower()}: field {wrong!r}: {values[wrong]!r} is out of the range of this field"
        raise EventInvalid(message)
    shown = {name: _shown(value) for name, value in values.items() if value is not None}
    head = {"kind": kind.name.lower(), "engine": stream.engine, "epoch": stream.epoch, "rank": stream.rank, "seq": event.seq}
    beside = {"extra": msgspec.Raw(extra.encode())} if extra else {}
    return msgspec.json.encode(head | shown | beside).decode()


def _shown(value: object) -> object:
    """A value as people read it: enums by name."""
    return value.name.lower() if isinstance(value, Enum) else value


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns one line into its events."""

    source: str
    number: int
    numbering: _Numbering

    def fail(self, name: str, problem: str) -> JsonLinesError:
        """The error for this line."""
        return JsonLinesError(self.source, self.number, name, problem)

    def read(self, text: str) -> Iterator[Line]:
        """All events that the line stands for: one, or `repeat` many."""
        row = self._object(text)
        repeat, every_ns = self._repeat(row)
        values = self._normal(row)
        for index in range(repeat):
            again = {name: f"{value}#{index}" for name, value in values.items() if index and name in ID_FIELDS and name != "ns"}
            yield self._line(values | again | self._later(values, index, every_ns))

    def _object(self, text: str) -> dict[str, object]:
        """The JSON object of the line."""
        try:
            row = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise self.fail("", f"not JSON: {error}") from error
        except UnicodeError as error:
            raise self.fail("", "not text in UTF-8") from error
        except RecursionError as error:
            raise self.fail("", "not JSON of events: nested too deep") from error
        if not isinstance(row, dict):
            raise self.fail("", 'a line must be one JSON object, as in {"t_ms": 0, "kind": "step_started"}')
        return row

    def _repeat(self, row: dict[str, object]) -> tuple[int, int]:
        """How many events the line stands for, and the nanoseconds between two of them; both leave the row."""
        repeat, every_ms = row.pop("repeat", 1), row.pop("every_ms", 0)
        if not isinstance(repeat, int) or isinstance(repeat, bool) or not 1 <= repeat <= _LARGEST_REPEAT:
            raise self.fail("repeat", f"{repeat!r} is not a whole number from 1 to {_LARGEST_REPEAT}")
        if not isinstance(every_ms, int | float) or isinstance(every_ms, bool):
            raise self.fail("every_ms", f"{every_ms!r} is not a number of milliseconds")
        return repeat, self._ns("every_ms", every_ms, _TIME_UNITS_NS["_ms"])

    def _normal(self, row: dict[str, object]) -> dict[str, object]:
        """The row with aliases resolved, every time in nanoseconds, and without nulls."""
        values: dict[str, object] = {}
        for written, value in row.items():
            name, exact = self._in_ns(FIELD_ALIASES.get(written, written), value)
            if value is None:
                continue
            if name in values:
                raise self.fail(written, f"{name} stands twice on this line")
            values[name] = exact
        return values

    def _in_ns(self, name: str, value: object) -> tuple[str, object]:
        """A field by its name in the contract: a time in nanoseconds, anything else as it is."""
        factor = _TIME_UNITS_NS.get(name[-3:])
        if factor is None or value is None:
            return name, value
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.fail(name, f"{value!r} is not a number")
        return f"{name[:-3]}_ns", self._ns(name, value, factor)

    def _ns(self, name: str, value: float, factor: int) -> int:
        """A time in whole nanoseconds."""
        try:
            return value * factor if isinstance(value, int) else round(value * factor)
        except OverflowError:
            raise self.fail(name, f"{value!r} is out of the range of a time") from None

    def _later(self, values: dict[str, object], index: int, every_ns: int) -> dict[str, object]:
        """What tells one event of a repeated line from the first: its time, and its seq where the line gives one."""
        seq = values.get("seq")
        later: dict[str, object] = {"t_ns": self._time(values) + index * every_ns}
        if isinstance(seq, int) and not isinstance(seq, bool):
            later["seq"] = seq + index
        return later

    def _time(self, values: dict[str, object]) -> int:
        """The time that every event needs."""
        time_ns = values.get("t_ns")
        if not isinstance(time_ns, int):
            raise self.fail("t_ns", "every event needs its time, as t_ns, t_us or t_ms")
        return time_ns

    def _kind(self, values: dict[str, object]) -> Kind:
        """The kind of the line; it leaves the values."""
        name = values.pop("kind", None)
        name = KIND_ALIASES.get(str(name), name)
        try:
            return Kind[str(name).upper()]
        except KeyError:
            raise self.fail("kind", f"{name!r} is no kind of event: docs/reference/events.md lists them") from None

    def _line(self, values: dict[str, object]) -> Line:
        """One event from its normal form, with absent numbers filled in."""
        kind = self._kind(values)
        stream = self._stream(values)
        extra = self._extra(values)
        self._fill(kind, values)
        strange = values.keys() - FIELDS_OF[kind] - {"seq", "t_ns"}
        if strange:
            raise self.fail(min(strange), f"{kind.name.lower()} has no such field; it has {', '.join(FIELDS_OF[kind])}")
        missing = sorted(REQUIRED_OF[kind] - values.keys())
        if missing:
            raise self.fail(missing[0], f"{kind.name.lower()} needs it")
        seq = values.setdefault("seq", self.numbering.seqs[stream] + 1)
        event = self._event(kind, {name: self._value(kind, name, value) for name, value in values.items()})
        self.numbering.seqs[stream] = max(self.numbering.seqs[stream], int(str(seq)))
        return Line(stream, event, self.number, extra)

    def _extra(self, values: dict[str, object]) -> str | None:
        """What a line keeps unread; it leaves the values."""
        extra = values.pop("extra", None)
        if extra is not None and not isinstance(extra, dict):
            raise self.fail("extra", "it holds an object, whatever is in it")
        return msgspec.json.encode(extra).decode() if extra else None

    def _stream(self, values: dict[str, object]) -> Stream:
        """The stream of the line; its parts leave the values."""
        engine, epoch, rank = values.pop("engine", _DEFAULT_ENGINE), values.pop("epoch", 1), values.pop("rank", 0)
        if not isinstance(engine, str) or not engine:
            raise self.fail("engine", f"{engine!r} is no name of an engine")
        if not isinstance(epoch, int | str) or isinstance(epoch, bool) or not 0 <= id_of(epoch) <= LARGEST_ID:
            raise self.fail("epoch", f"{epoch!r} is neither a text nor a number of 64 bits")
        if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank <= _LARGEST_RANK:
            raise self.fail("rank", f"{rank!r} is not a whole number from 0 to {_LARGEST_RANK}")
        return Stream(engine, Epoch(id_of(epoch)), Rank(rank))

    def _fill(self, kind: Kind, values: dict[str, object]) -> None:
        """Number what its writer left unnumbered."""
        needed = REQUIRED_OF[kind] - values.keys()
        if "op" in needed:
            values["op"] = self.numbering.op()
        if "slot" in needed and isinstance(values.get("block"), int | str):
            values["slot"] = self.numbering.slot(str(values.get("tier")).lower(), values["block"])
        if kind is Kind.STEP_STARTED and "step" in needed:
            self.numbering.step += 1
        if "step" in needed:
            values["step"] = self.numbering.step
        if kind is Kind.REQUEST_ARRIVED and isinstance(values.get("req"), str):
            values.setdefault("text", values["req"])

    def _value(self, kind: Kind, name: str, value: object) -> object:
        """A value in the type of its field."""
        if name in ID_FIELDS and isinstance(value, int | str) and not isinstance(value, bool):
            value = id_of(value)
        names = enum_of(kind, name)
        if names is not None:
            return self._member(names, name, value)
        if not within_range(name, value):
            raise self.fail(name, f"{value!r} is out of the range of this field")
        return value

    def _member(self, names: type[IntEnum], name: str, value: object) -> IntEnum:
        """The member of an enum that a person named."""
        try:
            return names[str(value).upper()]
        except KeyError:
            choices = ", ".join(member.name.lower() for member in names)
            raise self.fail(name, f"{value!r} is none of {choices}") from None

    def _event(self, kind: Kind, values: dict[str, object]) -> Event:
        """The event itself, its fields checked by their types."""
        try:
            return msgspec.convert(values, EVENT_OF[kind], strict=True)
        except msgspec.ValidationError as error:
            name = str(error).rpartition("`$.")[2].rstrip("`") if "`$." in str(error) else ""
            raise self.fail(name, str(error)) from error


def enum_of(kind: Kind, name: str) -> type[IntEnum] | None:
    """The enum whose member a field of a kind holds, or None where it holds none."""
    return _ENUMS.get((kind, name))


def _enums() -> dict[tuple[Kind, str], type[IntEnum]]:
    """The enum of every field that holds one."""
    found: dict[tuple[Kind, str], type[IntEnum]] = {}
    for kind, event in EVENT_OF.items():
        for known in msgspec.structs.fields(event):
            for option in getattr(known.type, "__args__", (known.type,)):
                if isinstance(option, type) and issubclass(option, IntEnum):
                    found[kind, known.name] = option
    return found


_ENUMS: Final = _enums()
