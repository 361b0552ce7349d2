"""Files as records: JSON Lines, one JSON document, or CSV with a header. One record that cannot be read hides no other."""

import csv
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.decoded import Bad

LONGEST_LINE_BYTES: Final = 64 << 20
LARGEST_DOCUMENT_BYTES: Final = 512 << 20
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class Record(NamedTuple):
    """One decoded thing of a file: where it stands, the sequence it is of where a file has several, how far the file is read.

    `value` is a `Bad` where it could not be decoded.
    """

    place: str
    value: object
    read_bytes: int
    sequence: str = ""


Reader = Callable[[Path], Iterator[Record]]
"""Reads a file as records. Raises `OSError` where the file cannot be read."""


def read_json(path: Path) -> Iterator[Record]:
    """JSON Lines; or, where the first line is not JSON by itself, one document. Lists stand for what is in them.

    A document that is an object of lists is read as several sequences, each under its name.
    """
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE_BYTES)
        file.seek(0)
        if _is_json(first):
            yield from _lines(file)
        else:
            yield from _document(file)


def read_csv(path: Path) -> Iterator[Record]:
    """Rows of a CSV file as objects of texts, by the names of its header; repeated names are numbered (`Delay`, `Delay.2`)."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file)
        try:
            names = _numbered([name.strip() for name in next(rows, [])])
            for row in rows:
                if row:
                    yield Record(f"line {rows.line_num}", _named(names, row), rows.line_num)
        except csv.Error as error:
            yield Record(f"line {rows.line_num}", Bad("", f"no CSV: {error}"), rows.line_num)


def json_of(raw: bytes) -> object:
    """One JSON value; NaN and Infinity, which Python writes, are read as well.

    Raises:
        ForeignInvalid: it is none.
    """
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE:
        pass
    try:
        found: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ForeignInvalid(f"not JSON: {str(error)[:100]}") from error
    return found


def _is_json(line: bytes) -> bool:
    """Whether a line is JSON by itself."""
    try:
        json_of(line)
    except ForeignInvalid:
        return not line.strip().startswith((b"{", b"["))
    return True


def _lines(file: BinaryIO) -> Iterator[Record]:
    """Each line by itself."""
    for number in itertools.count(1):
        line = file.readline(LONGEST_LINE_BYTES)
        if not line:
            return
        if line.strip():
            yield from _unfolded(f"line {number}", _value(line), file.tell(), "")


def _document(file: BinaryIO) -> Iterator[Record]:
    """The file as one value."""
    raw = file.read(LARGEST_DOCUMENT_BYTES)
    value = _value(raw)
    if isinstance(value, dict) and value and all(isinstance(one, list) for one in value.values()):
        for name, values in value.items():
            yield from _unfolded(str(name), values, len(raw), str(name))
        return
    yield from _unfolded("document", value, len(raw), "")


def _value(raw: bytes) -> object:
    """A value, or why it is none."""
    try:
        return json_of(raw)
    except ForeignInvalid as error:
        return Bad("", str(error))


def _unfolded(place: str, value: object, read_bytes: int, sequence: str) -> Iterator[Record]:
    """What is in a list, or the value itself."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield Record(f"{place}[{index}]", one, read_bytes, sequence)
    else:
        yield Record(place, value, read_bytes, sequence)


def _numbered(names: list[str]) -> list[str]:
    """Names of columns, each once."""
    counts: dict[str, int] = {}
    found = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        found.append(name if counts[name] == 1 else f"{name}.{counts[name]}")
    return found


def _named(names: list[str], row: list[str]) -> dict[str, object]:
    """A row by its names; what is beyond them by its place."""
    known = dict(zip(names, (value.strip() for value in row), strict=False))
    return {**known, **{f"column {place + 1}": value for place, value in enumerate(row) if place >= len(names)}}
