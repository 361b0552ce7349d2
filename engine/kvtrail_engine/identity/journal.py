"""What was invalidated, and which namespaces there were: a 0600 file beside the key that outlives the engine.

From an invalidation on, the blocks of the namespaces that it selects hang on another root, so that they have other ids than
before. So no place that an old block may still lie in, be it a file, a queue or another machine, can be found by a lookup
any more, whether or not it was erased.
"""

import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtrail_schema.identity import BlockId, NamespaceId, keyed_id

from kvtrail_engine.errors import StorageError, map_os_errors
from kvtrail_engine.identity.selector import Members, is_selected


@dataclass(frozen=True, slots=True)
class Invalidated:
    """One invalidation: a random mark, and its selector with hashed values."""

    mark: str
    selector: Members


EVERYTHING = Invalidated("unreadable", {})
"""What a line that cannot be read is taken for: it may have been an invalidation of anything."""


class Journal:
    """Any thread may ask and add. Adding blocks for the disk, so the engine's thread never does."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._lock = threading.Lock()
        self._invalidated: list[Invalidated] = []  # guarded by _lock
        self._namespaces: dict[NamespaceId, Members] = {}  # guarded by _lock
        with map_os_errors():
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o600)
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                os.write(self._file, b"\n")
        for line in content.splitlines():
            self._load(line)

    def root(self, members: Members) -> BlockId | None:
        """What the first blocks of a namespace hang on; None where nothing was ever invalidated."""
        with self._lock:
            marks = [known.mark for known in self._invalidated if is_selected(members, known.selector)]
        return BlockId(keyed_id(self._key, b"root", *[mark.encode() for mark in marks])) if marks else None

    def selected(self, selector: Members) -> set[NamespaceId]:
        """The namespaces that were ever used here and that a selector means."""
        with self._lock:
            return {ns for ns, members in self._namespaces.items() if is_selected(members, selector)}

    def members(self, ns: NamespaceId) -> Members | None:
        """The hashed members of a namespace that was used here in this life or an earlier one."""
        with self._lock:
            return self._namespaces.get(ns)

    def remember(self, ns: NamespaceId, members: Members) -> None:
        """Note a namespace, so that what it left on disk can be found in a later life; at most once each, not synchronised."""
        with self._lock:
            if ns in self._namespaces:
                return
            self._namespaces[ns] = members
            with suppress(StorageError):  # without it, a later life leaves dead bytes lie, and reads none of them
                self._append({"namespace": f"{ns:016x}", "members": members})

    def invalidate(self, selector: Members) -> Invalidated:
        """Put an invalidation down. It holds from here on, and is on the disk when this returns.

        Raises:
            StorageError: it could not be written; then it holds until the engine ends.
        """
        made = Invalidated(os.urandom(8).hex(), selector)
        with self._lock:
            self._invalidated.append(made)
            self._append({"invalidated": made.mark, "selector": selector})
            with map_os_errors():
                os.fsync(self._file)
        return made

    def close(self) -> None:
        """Close the file; twice is once."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _append(self, row: Mapping[str, Any]) -> None:
        """One line, in one write; under the lock."""
        with map_os_errors():
            os.write(self._file, json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n")

    def _load(self, line: bytes) -> None:
        """One line of an earlier life; what cannot be read fails safe."""
        if not line:
            return
        try:
            row = json.loads(line)
            if "namespace" in row:
                self._namespaces[NamespaceId(int(row["namespace"], 16))] = dict(row["members"])
            else:
                self._invalidated.append(Invalidated(str(row["invalidated"]), dict(row["selector"])))
        except (ValueError, KeyError, TypeError):
            self._invalidated.append(EVERYTHING)
