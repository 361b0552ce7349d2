"""A program for tests: calls of the writer in C with values of any type, right and wrong, from a seed.

`fuzz_emit.py SEED CALLS [EXTENSION]`, where the extension is another build of the writer: ends with 0 when nothing was
raised but a TypeError of a wrong call, every seq is settled, and the writer in Python, given the same calls, says the same.
"""

import random
import sys
import tempfile
from array import array
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import kvtrail_agent
from kvtrail_agent.ring_blocks import BLOCK_KINDS
from kvtrail_agent.writer_choice import WriterKind
from kvtrail_schema.absent import NO_F64, NO_I64, NO_U8, NO_U32, NO_U64
from kvtrail_schema.kinds import FIELDS_OF, REQUIRED_OF, Kind

from tests.agent.rings import TestRing, any_value, make_ring, settled_seqs
from tools.ring_kinds import ordered


class Index:
    """A number by `__index__` alone, as those of numpy are."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        """The number."""
        return self._number


class Trouble:
    """Raises whatever it is asked."""

    def __index__(self) -> int:
        """Never a number."""
        raise RuntimeError("no number")

    def __bool__(self) -> bool:
        """Never true or false."""
        raise RuntimeError("no truth")

    def __float__(self) -> float:
        """Never a float."""
        raise RuntimeError("no float")

    def __len__(self) -> int:
        """Never long."""
        raise RuntimeError("no length")


STRANGE: Final[list[Callable[[random.Random], Any]]] = [
    lambda draw: draw.choice([NO_U8, NO_U32, NO_U64, NO_I64, NO_F64, None, True, False, 0, -1, 1 << 64, 1 << 200, -(1 << 63)]),
    lambda draw: draw.getrandbits(draw.choice([1, 8, 16, 31, 32, 33, 63, 64, 65])),
    lambda draw: -draw.getrandbits(draw.choice([1, 8, 15, 16, 31, 63, 64])),
    lambda draw: draw.choice(["", "text", "ab" * 16, "é" * 20, "\ud800", "x" * 300, "no hex at all, 32 characters long"]),
    lambda draw: draw.choice([b"", b"raw", bytearray(9), memoryview(b"12345678"), 1.5, float("inf"), 2j]),
    lambda draw: draw.choice([(), [], [1], {}, {1}, object(), Index(7), Index(-7), Trouble(), int, Kind.EVICTED]),
]


def value(draw: random.Random, kind: Kind, name: str) -> Any:
    """Mostly a value that fits, else anything."""
    return draw.choice(STRANGE)(draw) if draw.random() < 0.2 else any_value(kind, name) if name != "t_ns" else 5


def arguments(draw: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    """A call of one emit method: some arguments by position, some by name, now and then too few or strange ones."""
    kind = draw.choice(list(Kind))
    names = [*ordered(kind), "t_ns"]
    by_position = names[: draw.randint(0, len(names))]
    by_name = [name for name in names[len(by_position) :] if name in REQUIRED_OF[kind] or draw.random() < 0.3]
    if draw.random() < 0.05:
        by_name = draw.sample([*names, "strange"], draw.randint(0, len(names)))
    values = [value(draw, kind, name) for name in by_position] + ([1] * draw.randint(0, 30) if draw.random() < 0.02 else [])
    named = {name: value(draw, kind, name) if name != "strange" else 1 for name in by_name}
    return kind.name.lower(), values, {**named, **({} if "t_ns" in [*by_position, *named] else {"t_ns": 5})}


def rows(draw: random.Random) -> tuple[str, list[Any], dict[str, Any]]:
    """A call of `emit_blocks`."""
    kind = draw.choice(sorted(BLOCK_KINDS)) if draw.random() < 0.97 else draw.choice([Kind.STEP_STARTED, 0, 71, -5, 1 << 70])
    count = draw.choice([0, 1, 2, 15, 16, 17, 40, 600])
    numbers = [draw.getrandbits(63) for _ in range(count)]
    blocks = draw.choice([numbers, tuple(numbers), array("Q", numbers), array("q", numbers), memoryview(array("Q", numbers))])
    if draw.random() < 0.1:
        blocks = draw.choice([*([*numbers, draw.choice(STRANGE)(draw)],), draw.choice(STRANGE)(draw), memoryview(b"12345678")])
    own = FIELDS_OF[kind] if isinstance(kind, Kind) else ()
    slots = (
        draw.choice([array("I", range(count)), list(range(count)), None if "slot" in own else [1]]) if "slot" in own else None
    )
    needed = REQUIRED_OF[kind] if isinstance(kind, Kind) else frozenset[str]()
    fields = {n: value(draw, Kind(kind), n) for n in own if n not in {"block", "slot"} and (n in needed or draw.random() < 0.3)}
    return "emit_blocks", [kind, blocks, slots], {**fields, "t_ns": 5}


def call(ring: TestRing, method: str, values: list[Any], named: dict[str, Any]) -> int | str:
    """The seq that a call returns, or the error that it raises."""
    try:
        return int(getattr(ring.writer, method)(*values, **named))
    except TypeError:
        return "TypeError"


def use_extension(path: Path) -> None:
    """Let the writer in C be the one in this file."""
    spec = spec_from_file_location("kvtrail_agent._ring", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["kvtrail_agent._ring"] = module
    kvtrail_agent._ring = module  # as an import of it would do


def main() -> None:
    """Call both writers in the same way, with reads in between, and compare."""
    if len(sys.argv) > 3:
        use_extension(Path(sys.argv[3]))
    draw = random.Random(int(sys.argv[1]))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        rings = [
            make_ring(Path(folder), text_bytes=1 << 20, kind=kind)
            for folder, kind in ((one, WriterKind.C), (other, WriterKind.PYTHON))
        ]
        settled: list[list[int]] = [[], []]
        for number in range(int(sys.argv[2])):
            drawn = rows(draw) if draw.random() < 0.2 else arguments(draw)
            said = [call(ring, *drawn) for ring in rings]
            assert said[0] == said[1], f"call {number}: {drawn} gave {said}"
            if draw.random() < 0.1:
                chunks = [ring.take() for ring in rings]
                assert chunks[0].table.equals(chunks[1].table), f"call {number}: tables differ"
                assert chunks[0].drops == chunks[1].drops, f"call {number}: drops differ: {chunks[0].drops} {chunks[1].drops}"
                for seqs, chunk in zip(settled, chunks, strict=True):
                    seqs.extend(settled_seqs(chunk))
        for seqs, ring in zip(settled, rings, strict=True):
            while not (chunk := ring.take()).is_empty:
                seqs.extend(settled_seqs(chunk))
            assert seqs == list(range(1, ring.writer._last_seq() + 1))
            ring.close()


if __name__ == "__main__":
    main()
