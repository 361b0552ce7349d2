"""What a store does about its sealed files when it is opened: sweep, compare with the books, and show them in the view."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
from kvtrail_schema.identity import Stream

from kvtrail_collector.errors import StoreUnavailable
from kvtrail_collector.store.account import Account
from kvtrail_collector.store.commit import transaction
from kvtrail_collector.store.part_file import sweep
from kvtrail_collector.store.parts import Part, load_parts, show_all
from kvtrail_collector.store.seal_commit import strike

_LOG: Final = logging.getLogger(__name__)


class Opened(NamedTuple):
    """The sealed parts that are there, and the books after those that are not were struck off."""

    parts: tuple[Part, ...]
    accounts: dict[Stream, Account]


def open_parts(connection: duckdb.DuckDBPyConnection, accounts: dict[Stream, Account], folder: Path | None) -> Opened:
    """Bring view and books to the files that are there. A file that is gone or cut is told by the balance, as a gap.

    Raises:
        StoreUnavailable: none of the files is there: that is no loss, but the wrong folder. Nothing was changed.
    """
    parts = load_parts(connection)
    lost = lost_parts(parts, folder)
    if parts and len(lost) == len(parts):
        do = "mount the folder, or name the right one with KVTRAIL_SEAL_DIR"
        raise StoreUnavailable(f"none of {len(parts)} sealed files is there", where=str(folder), do=do)
    if folder is not None:
        _sweep(folder, parts)
    with transaction(connection):
        changed = strike(connection, accounts, lost, folder) if lost else {}
        show_all(connection, [part for part in parts if part not in lost], folder)
    for part in lost:
        _LOG.error("%s is gone or cut: its %d events are no longer stored, and nobody accounts for them", part.file, part.rows)
    return Opened(tuple(part for part in parts if part not in lost), {**accounts, **changed})


def lost_parts(parts: Sequence[Part], folder: Path | None) -> tuple[Part, ...]:
    """Parts whose file is not there, or not as long as the books say."""
    return tuple(part for part in parts if folder is None or _size_bytes(folder / part.file) != part.size_bytes)


def _sweep(folder: Path, parts: Sequence[Part]) -> None:
    """Remove files of ours that the books do not know."""
    for name in sweep(folder, [part.file for part in parts]):
        _LOG.info("removed %s: its commit never happened, or it had expired", name)


def _size_bytes(path: Path) -> int:
    """The size of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
