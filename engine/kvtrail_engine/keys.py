"""The key that ids of blocks and namespaces are hashed with: random, in a 0600 file, never in a setting."""

import os
import secrets
from pathlib import Path

from kvtrail_engine.errors import map_os_errors

KEY_BYTES = 32


def load_or_create_key(path: Path) -> bytes:
    """The key in this file, made at the first call.

    Raises:
        StorageError: the file cannot be read or made.
    """
    with map_os_errors():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return path.read_bytes()
        with os.fdopen(file, "wb") as stream:
            key = secrets.token_bytes(KEY_BYTES)
            stream.write(key)
    return key
