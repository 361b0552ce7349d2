"""The secret under which hashes of other engines become ids of ours (EVENTS §6): one file for a whole fleet.

Engines whose agents read the same key name the same block by the same id; without a file each process draws a key of its own,
and its ids meet nobody else's.
"""

import secrets
from pathlib import Path
from typing import Final

from kvtrail_schema.identity import MIN_KEY_BYTES

from kvtrail_agent.errors import SettingsInvalid

_DRAWN_BYTES: Final = 32
_LARGEST_BYTES: Final = 64
"""What the hash takes as a key (RFC 7693)."""


def fleet_key(path: Path | None) -> bytes:
    """The key in a file that its owner alone may read, or a random one where no file is named. Read once, at a start.

    Raises:
        SettingsInvalid: the file cannot be read, may be read by others, or holds too little.
    """
    if path is None:
        return secrets.token_bytes(_DRAWN_BYTES)
    try:
        mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    except OSError as error:
        raise SettingsInvalid(f"key_file {path}: {error.strerror}") from error
    if mode & 0o077:
        raise SettingsInvalid(f"key_file {path} has mode {mode:04o}: make it 0600, so that nobody else can read it")
    if len(key) < MIN_KEY_BYTES:
        raise SettingsInvalid(f"key_file {path} holds {len(key)} bytes: put {_DRAWN_BYTES} random ones there")
    return key[:_LARGEST_BYTES]
