"""Writes one sealed file so that it is there whole or not at all, and finds files that no book knows.

The files are plain Parquet, readable without kvtrail: sorted by stream, request and seq, zstd, with engine, epoch and rank
on every row. Only their owner may read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from kvtrail_schema.arrow_schema import EVENT_SCHEMA, EXTRA

SEALED_SCHEMA: Final = pa.schema(
    [
        pa.field("engine", pa.utf8()),
        pa.field("epoch", pa.uint64()),
        pa.field("rank", pa.uint16()),
        pa.field("stream_id", pa.int32()),
        *EVENT_SCHEMA,
        pa.field(EXTRA, pa.utf8()),
    ]
)
"""The columns of every sealed file."""

_DELTAS: Final = (
    *("seq", "wait_ns", "duration_ns"),
    *("queue_ns", "alloc_ns", "submit_ns", "io_ns", "copy_ns", "sync_ns"),
)
"""Numbers whose differences need fewer bits than they do, and that hardly ever stand twice."""

_PLAIN: Final = ("t_ns", "block", "parent", "slot", "op", "step", "id", "cause")
"""Numbers that stand on several rows of a request, in the same order: zstd finds whole runs of them where they are not packed
into bits. Splitting them into planes of bytes would save another twentieth; DuckDB does not read that of whole numbers.
"""

_ZSTD_LEVEL: Final = 3
"""Six saves one byte in a hundred more, and takes half as long again."""
_WIDEST_BYTES: Final = 8
_OURS: Final = re.compile(r"\.?events-\d{8}\.parquet(\.part)?")


def part_name(part_id: int) -> str:
    """The name of a part's file."""
    return f"events-{part_id:08d}.parquet"


def write_part_file(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of some of the columns as a file of all of them. Durable when it returns; returns its size in bytes.

    Raises:
        OSError: the disk did not take it; no file of that name exists then.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as sink:
            _write(sink, batches)
            sink.flush()
            os.fsync(sink.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return path.stat().st_size


def sweep(folder: Path, known: Iterable[str]) -> list[str]:
    """Remove files of ours that no book knows: what a crash between file and commit left. Returns their names."""
    kept = set(known)
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if _OURS.fullmatch(path.name) and path.name not in kept]
    for path in found:
        path.unlink(missing_ok=True)
    return sorted(path.name for path in found)


def _write(sink: Any, batches: Iterable[pa.RecordBatch]) -> None:
    """One row group a batch."""
    others = [name for name in SEALED_SCHEMA.names if name not in {*_DELTAS, *_PLAIN}]
    with pq.ParquetWriter(
        sink,
        SEALED_SCHEMA,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        data_page_version="2.0",
        use_dictionary=others,  # type: ignore[arg-type]  # a list of columns is documented; the stubs know only a flag
        column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    ) as writer:
        for batch in batches:
            writer.write_batch(_widened(batch), row_group_size=max(batch.num_rows, 1))


def _widened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a sealed file; those that a batch lacks are null, and share one run of zeros."""
    present = set(batch.schema.names)
    zeros = pa.py_buffer(bytes(_WIDEST_BYTES * (batch.num_rows + 1)))
    columns = [
        batch.column(field.name).cast(field.type) if field.name in present else _nulls(batch.num_rows, field.type, zeros)
        for field in SEALED_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SEALED_SCHEMA)


def _nulls(rows: int, kind: pa.DataType, zeros: pa.Buffer) -> pa.Array[Any]:
    """A column without values."""
    buffers: list[pa.Buffer | None] = [zeros] * (3 if pa.types.is_string(kind) else 2)
    empty: pa.Array[Any] = pa.Array.from_buffers(kind, rows, buffers, null_count=rows)
    return empty


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
