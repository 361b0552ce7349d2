"""Who and what a namespace stands for: tenant and model, as they were declared, which is hashed (EVENTS §2)."""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from kvtrail_schema.kinds import Kind

from kvtrail_collector.facts_rows import NO_ID, IdArray, IntArray, Rows


class Namespace(NamedTuple):
    """What one namespace declares of itself; None for what it does not say."""

    tenant: str | None
    model: str | None


class Names(NamedTuple):
    """Names as numbers: element i has the name `names[numbers[i]]`, or none where its number is -1."""

    numbers: IntArray
    names: tuple[str, ...]


def namespaces_of(rows: Rows) -> dict[int, Namespace]:
    """The declarations among some rows."""
    places = rows.of_kinds(Kind.NAMESPACE_DECLARED)
    return declared(zip(rows.ids["ns"][places].tolist(), rows.text[places].tolist(), strict=True))


def declared(texts: Iterable[tuple[int, str | None]]) -> dict[int, Namespace]:
    """What the texts of declarations say, by namespace; the last one of each counts."""
    return {ns: Namespace(_member(text, "tenant") or f"{ns:016x}", _member(text, "model")) for ns, text in texts}


def _member(text: str | None, name: str) -> str | None:
    """One member of the text of a declaration."""
    try:
        members = json.loads(text or "{}")
    except json.JSONDecodeError:
        return None
    value = members.get(name) if isinstance(members, dict) else None
    return value if isinstance(value, str) else None


def tenants(ns: IdArray, known: Mapping[int, Namespace]) -> Names:
    """The tenant of each; one that was not declared is known by its own number."""
    return _names(ns, {own: known[own].tenant if own in known else f"{own:016x}" for own in _distinct(ns)})


def models(ns: IdArray, known: Mapping[int, Namespace]) -> Names:
    """The model of each, where its namespace says."""
    return _names(ns, {own: known[own].model if own in known else None for own in _distinct(ns)})


def _distinct(ns: IdArray) -> list[int]:
    """The namespaces that occur."""
    return [own for own in np.unique(ns).tolist() if own != int(NO_ID)]


def _names(ns: IdArray, name_of: Mapping[int, str | None]) -> Names:
    """The number of the name of each."""
    names = sorted({name for name in name_of.values() if name is not None})
    number = {name: place for place, name in enumerate(names)}
    distinct, place = np.unique(ns, return_inverse=True)
    found = [name_of.get(own) for own in distinct.tolist()]
    numbers = np.array([-1 if name is None else number[name] for name in found], dtype=np.int64)
    return Names(numbers[place] if len(distinct) else np.zeros(0, dtype=np.int64), tuple(names))
