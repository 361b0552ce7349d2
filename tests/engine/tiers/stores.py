"""A small language for tests of the nvme files: blocks by number, payloads by value, stores in a folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvtrail_engine.clock import SystemClock
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.tiers.block import Block
from kvtrail_engine.tiers.envelope import Origin
from kvtrail_engine.tiers.segments import Get, Put, SegmentStore
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

SIZE = 1024
SLOTS = 8
ORIGIN = Origin(fingerprint=77)
OFF = NvmeSettings(direct=DirectIo.OFF)


def block(number: int, **changes: Any) -> Block:
    """The block of this number, of a chain in one namespace."""
    fields = {"owner": "acme", "model_version": "v1", **changes}
    return Block(BlockId(number), NamespaceId(fields.pop("ns", 1)), BlockId(number - 1), number * 32, 32, **fields)


def data(value: int, size: int = SIZE) -> memoryview:
    """A payload of one value, where direct I/O could read and write it."""
    return memoryview(bytearray([value]) * size)


def put(slot: int, number: int, value: int, **more: Any) -> Put:
    """A record for a slot."""
    return Put(Slot(slot), block(number), data(value), **more)


@contextmanager
def opened(directory: Path, settings: NvmeSettings = OFF, **changes: Any) -> Iterator[SegmentStore]:
    """A store in a folder, closed at the end."""
    fields: dict[str, Any] = {
        "slots": SLOTS,
        "payload_bytes": SIZE,
        "origin": ORIGIN,
        "wall_ns": time.time_ns,
        "clock": SystemClock(),
        **changes,
    }
    store = SegmentStore(directory, settings=settings, **fields)
    try:
        yield store
    finally:
        store.close()


def fill(directory: Path, *puts: Put, settings: NvmeSettings = OFF, **changes: Any) -> None:
    """Write records and close."""
    with opened(directory, settings, **changes) as store:
        store.write(puts, store.frames(8))


def read(store: SegmentStore, slot: int, wanted: Block) -> bytes:
    """The payload in a slot, which must be that block's; raises what is wrong with it."""
    into = bytearray(store.geometry.payload_bytes)
    store.read_one(Get(Slot(slot), wanted, memoryview(into)), store.frames(1))
    return bytes(into)


def record_at(store: SegmentStore, slot: int) -> tuple[int, int]:
    """Offset in its file and length of a slot's record."""
    return store.geometry.offset_of(Slot(slot)), store.geometry.record_bytes


def flip(path: Path, at: int, mask: int = 1) -> None:
    """Change one byte of a file."""
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([byte ^ mask]))
