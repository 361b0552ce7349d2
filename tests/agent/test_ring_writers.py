"""The two writers are one: the same calls leave the same bytes, and say the same of every call."""

import os
import shutil
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvtrail_agent.writer_choice import PURE_PYTHON, WriterKind, c_writer_is_built, writer_in_use
from kvtrail_schema.absent import NO_U64
from kvtrail_schema.events import Event
from kvtrail_schema.identity import StepId

from tests.agent import fuzz_emit
from tests.agent.rings import make_ring, writer_class
from tests.agent.test_ring_blocks import calls
from tests.real import require_real
from tests.strategies import events as any_events
from tools import sanitize

LONG = os.environ.get("KVTRAIL_LONG") == "1"
SEEDS = range(200) if LONG else range(2)


@settings(max_examples=80)
@given(st.lists(any_events(), max_size=40), st.lists(calls(), max_size=2))
def test_both_writers_leave_the_same_bytes(drawn: list[Event], batches: list[tuple[object, ...]]) -> None:
    """Any events and batches under one clock: header, books, slots and texts are equal, byte for byte."""
    left = []
    for kind in WriterKind:
        with TemporaryDirectory() as folder:
            ring = make_ring(Path(folder), kind=kind)
            for event in drawn:
                ring.emit(event)
            for block_kind, blocks, slots, fields in batches:
                ring.writer.emit_blocks(block_kind, blocks, slots, **fields)  # type: ignore[arg-type]  # drawn in this form
            left.append(bytes(ring.file.memory[320:]))  # behind the identity, which has the moment of its making
            ring.close()

    assert left[0] == left[1]


def test_numbers_at_every_border_are_written_as_they_are(tmp_path: Path) -> None:
    """Around every power of two, where an interpreter's numbers grow by a digit: each is read back, or refused if it must."""
    borders = {power + step for power in (1 << bit for bit in range(65)) for step in (-1, 0, 1)}
    fitting = sorted(number for number in borders if number < NO_U64)
    ring = make_ring(tmp_path, slot_count=1 << 9, kind=WriterKind.C)
    for number in fitting:
        ring.writer.step_started(StepId(number), -number if number < 1 << 63 else 0)
    refused = [ring.writer.step_started(StepId(number), 0) for number in (-1, 1 << 64, (1 << 64) + 1)]
    table = ring.take().table

    assert fitting == table["step"].to_pylist()
    assert [-number if number < 1 << 63 else 0 for number in fitting] == table["t_ns"].to_pylist()
    assert [len(fitting) + place for place in (1, 2, 3)] == refused
    ring.close()


def test_members_of_enums_keep_their_numbers(tmp_path: Path) -> None:
    """More members than the writer remembers, most of them gone again: none is taken for another."""
    ring = make_ring(tmp_path, kind=WriterKind.C, slot_count=1 << 12)
    expected = []
    for turn in range(5):
        many = IntEnum(f"Many{turn}", {f"N{number}": number for number in range(1, 200)})  # type: ignore[misc]  # made as it runs
        for member in many:
            ring.writer.step_started(StepId(member), int(member))
            expected.append(int(member))

    assert expected == ring.take().table["step"].to_pylist()
    ring.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_of_any_kind_never_break_it(seed: int) -> None:
    """Values of any type, too few, too many: nothing is raised but for a wrong call, each seq is settled, as in Python."""
    writer_class(WriterKind.C)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path]), PURE_PYTHON: "0"}
    command = [sys.executable, fuzz_emit.__file__, str(seed), "20000" if LONG else "1500"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=110)

    assert done.returncode == 0, done.stderr[-3000:]


def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Under the sanitizers for addresses and undefined behaviour, with warnings as errors, the same calls end as quietly."""
    require_real("gcc", found=shutil.which("gcc") is not None, how="install gcc with its sanitizers")
    extension = sanitize.build(tmp_path)
    done = sanitize.run(extension, 7, 20_000 if LONG else 500)

    assert done.returncode == 0, done.stderr[-3000:]


def test_an_operator_can_keep_the_writer_in_python() -> None:
    """One variable decides; without the extension there is nothing to decide."""
    with_c = writer_in_use({})

    assert (WriterKind.C if c_writer_is_built() else WriterKind.PYTHON) == with_c
    assert WriterKind.PYTHON == writer_in_use({PURE_PYTHON: "1"})
    assert with_c == writer_in_use({PURE_PYTHON: "0"})
