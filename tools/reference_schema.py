"""The JSON Schema of one written line: what `write_line` writes, and what a program in any language may rely on."""

import json
from typing import Any, Final

import msgspec
from kvtrail_schema.columns import COLUMNS, Width, limits
from kvtrail_schema.enums import Dtype, Path, Stage, Tier
from kvtrail_schema.jsonl import enum_of
from kvtrail_schema.kinds import EVENT_OF, FIELDS_OF, REQUIRED_OF, Kind

_ID: Final = "urn:kvtrail:event:1"
_OPEN_LEVELS: Final = 4

_TYPES: Final[dict[Width, dict[str, Any]]] = {
    Width.F64: {"type": "number"},
    Width.BOOL: {"type": "boolean"},
    Width.TEXT: {"type": "string"},
    Width.TRACE: {"type": "string"},
}


def event_schema() -> str:
    """The text of `docs/reference/event.schema.json`."""
    _, described = msgspec.json.schema_components(EVENT_OF.values())
    kinds = {EVENT_OF[kind].__name__: _kind(kind, described[EVENT_OF[kind].__name__]) for kind in Kind}
    lists = {names.__name__: _names(names) for names in (Tier, Dtype, Path, Stage)}
    integers = {width.value[0]: _integer(width) for width in Width if limits(width) is not None}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "kvtrail event",
        "description": "One line of a kvtrail JSON Lines file, as kvtrail writes it. Generated: do not edit.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds],
        "$defs": kinds | lists | integers,
    }
    return _readable(schema) + "\n"


_EXTRA = {"type": "object", "description": "What a sender told beside the event that this version does not know; kept unread."}


def _kind(kind: Kind, described: dict[str, Any]) -> dict[str, Any]:
    """One kind: its sentence and required fields from the class, the ranges of its fields from their columns."""
    place = {"engine": {"type": "string", "minLength": 1}, "epoch": _ref("u64"), "rank": _ref("u16")}
    fields = {name: _field(kind, name) for name in ("seq", "t_ns", *FIELDS_OF[kind])}
    needed = [name for name in FIELDS_OF[kind] if name in REQUIRED_OF[kind]]
    return {
        "description": described["description"],
        "type": "object",
        "properties": {"kind": {"const": described["properties"]["kind"]["enum"][0]}, **place, **fields, "extra": _EXTRA},
        "required": ["kind", "engine", "epoch", "rank", "seq", "t_ns", *needed],
        "additionalProperties": False,
    }


def _field(kind: Kind, name: str) -> dict[str, Any]:
    """The type of a field: a list of names, an integer of its width, or what else its width holds."""
    names = enum_of(kind, name)
    if names is not None:
        return _names(names) if name == "reason" else _ref(names.__name__)
    width = COLUMNS[name].width
    return _TYPES.get(width) or _ref(width.value[0])


def _ref(name: str) -> dict[str, Any]:
    """A reference to a definition of this schema."""
    return {"$ref": f"#/$defs/{name}"}


def _names(names: Any) -> dict[str, Any]:
    """A closed list: an unknown name comes from a newer version."""
    return {"enum": [member.name.lower() for member in names]}


def _integer(width: Width) -> dict[str, Any]:
    """The integers that a width can hold."""
    low, high = limits(width) or (0, 0)
    return {"type": "integer", "minimum": low, "maximum": high}


def _readable(value: Any, level: int = 0) -> str:
    """JSON with one property a line, and everything below a property on that line."""
    if not isinstance(value, dict) or level >= _OPEN_LEVELS:
        return json.dumps(value, ensure_ascii=False)
    inner = ",\n".join(f"{'  ' * (level + 1)}{json.dumps(name)}: {_readable(part, level + 1)}" for name, part in value.items())
    return f"{{\n{inner}\n{'  ' * level}}}"
