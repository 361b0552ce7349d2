"""A small language for what goes wrong with the files of an engine's nvme tier."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kvtrail_engine.engine import Engine
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.tiers.envelope import read_header, write_frame
from kvtrail_engine.tiers.segment_file import segment_path
from kvtrail_schema.identity import Slot


def place_of(engine: Engine, slot: Slot) -> tuple[Path, int, int]:
    """File, offset and length of a slot's record."""
    geometry = engine.nvme.store.geometry
    path = segment_path(engine.settings.data_dir / "nvme", geometry.segment_of(slot))
    return path, geometry.offset_of(slot), geometry.record_bytes


def stored_slots(engine: Engine, spec: RequestSpec) -> list[Slot]:
    """The slots on nvme that hold a prompt's blocks, in order."""
    blocks = engine.blocks_of(spec)
    copies = engine.ask(lambda: [engine.context.nvme.find(block.id) for block in blocks])
    return [copy.slot for copy in copies if copy is not None]


def take(engine: Engine, slot: Slot) -> bytes:
    """A slot's record as it lies in its file."""
    path, offset, size = place_of(engine, slot)
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(size)


def lay(engine: Engine, slot: Slot, record: bytes) -> None:
    """Overwrite a slot's record, or its beginning."""
    path, offset, _ = place_of(engine, slot)
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(record)


def swap_records(engine: Engine, first: Slot, second: Slot) -> None:
    """Exchange two records as a whole."""
    one, other = take(engine, first), take(engine, second)
    lay(engine, first, other)
    lay(engine, second, one)


def flip_byte(engine: Engine, slot: Slot, at: int, mask: int = 0xFF) -> None:
    """Change one byte of a slot's record."""
    record = bytearray(take(engine, slot))
    record[at] ^= mask
    lay(engine, slot, bytes(record))


def forge(engine: Engine, slot: Slot, **changes: Any) -> None:
    """Let a slot hold a record that is whole, with the same payload, and says something else of its block."""
    align = engine.nvme.store.geometry.align_bytes
    record = memoryview(bytearray(take(engine, slot)))
    header, stamp = read_header(record[:align])
    write_frame(replace(header, block=replace(header.block, **changes)), stamp, record[:align], record[-align:])
    lay(engine, slot, bytes(record))
