"""The cases as data, and ways to tell the same story in other words: other ids, another order, another time, beside others."""

import random
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from kvtrail_schema.events import Event
from kvtrail_schema.identity import LARGEST_ID, Epoch, Rank, Stream
from kvtrail_schema.jsonl import Line, read_readable, write_line
from kvtrail_schema.kinds import FIELDS_OF, kind_of

FOLDER = Path(__file__).parent
_IDS = ("req", "block", "parent", "op", "prefetch", "id", "cause", "step")
_MOMENTS = ("deadline_ns",)
Retelling = Callable[[list[Line], random.Random], list[Line]]


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """One fault that people met: the log that shows it, and its control."""

    name: str
    code: str
    tier: str | None
    fires: Path
    control: Path


def case_folders() -> list[CaseFolder]:
    """Every case, by name."""
    return [_case(path.parent) for path in sorted(FOLDER.glob("*/case.toml"))]


def _case(folder: Path) -> CaseFolder:
    """One folder."""
    told = tomllib.loads((folder / "case.toml").read_text())
    return CaseFolder(folder.name, told["code"], told.get("tier"), folder / "fires.jsonl", folder / "control.jsonl")


def numbered(path: Path) -> list[Line]:
    """The events of a file, with every number filled in; lines that are none are left out."""
    return [line for line in read_readable(path.read_text().splitlines()) if isinstance(line, Line)]


def written(lines: Iterable[Line]) -> list[str]:
    """Events as lines that name everything."""
    return [write_line(line.stream, line.event) for line in lines]


def with_other_ids(lines: list[Line], rng: random.Random) -> list[Line]:
    """The same story about other requests, blocks and transfers."""
    mask = rng.getrandbits(62) | 1

    def other(value: int) -> int:
        return min(value ^ mask, LARGEST_ID)

    return [_replaced(line, {name: other(value) for name, value in _present(line.event, _IDS).items()}) for line in lines]


def at_another_time(lines: list[Line], rng: random.Random) -> list[Line]:
    """The same story on a clock that began earlier."""
    shift = rng.randrange(10**12, 10**15)
    moved = [
        (line, {name: value + shift for name, value in _present(line.event, ("t_ns", *_MOMENTS)).items()}) for line in lines
    ]
    return [_replaced(line, changes) for line, changes in moved]


def under_another_name(lines: list[Line], rng: random.Random) -> list[Line]:
    """The same story of another engine, with other epochs."""
    mask = rng.getrandbits(62)
    return [Line(Stream("other", Epoch(line.stream.epoch ^ mask), line.stream.rank), line.event, line.number) for line in lines]


def in_another_order(lines: list[Line], rng: random.Random) -> list[Line]:
    """The same lines, shuffled in the file; their seqs and times tell the order."""
    return rng.sample(lines, len(lines))


def beside_a_healthy_rank(lines: list[Line], _rng: random.Random) -> list[Line]:
    """The same story while another engine is well."""
    home = Stream("calm", Epoch(99), Rank(0))
    start = min(line.event.t_ns for line in lines)
    calm = numbered(FOLDER / "calm.jsonl")
    return lines + [Line(home, msgspec.structs.replace(line.event, t_ns=line.event.t_ns + start), line.number) for line in calm]


RETELLINGS: tuple[Retelling, ...] = (
    with_other_ids,
    at_another_time,
    under_another_name,
    in_another_order,
    beside_a_healthy_rank,
)


def retold(lines: list[Line], rng: random.Random) -> list[Line]:
    """The story in wholly other words."""
    for retell in RETELLINGS:
        lines = retell(lines, rng)
    return lines


def _present(event: Event, names: Iterable[str]) -> dict[str, int]:
    """The fields of these names that an event has."""
    own = {"t_ns", *FIELDS_OF[kind_of(event)]}
    return {name: getattr(event, name) for name in names if name in own and getattr(event, name) is not None}


def _replaced(line: Line, changes: dict[str, int]) -> Line:
    """A line with some fields of its event changed."""
    return Line(line.stream, msgspec.structs.replace(line.event, **changes), line.number)
