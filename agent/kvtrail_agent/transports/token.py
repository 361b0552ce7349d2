"""Tokens for a collector: from a file that its owner alone may read, never from a flag."""

import stat
from pathlib import Path

from kvtrail_agent.errors import SettingsInvalid


def read_token(token_file: Path) -> str:
    """The token in a file that its owner alone may read.

    Raises:
        SettingsInvalid: the file cannot be read, is empty, or others may read it.
    """
    try:
        mode = token_file.stat().st_mode
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        message = f"token_file {token_file}: {error.strerror}"
        raise SettingsInvalid(message) from error
    if stat.S_IMODE(mode) & 0o077:
        message = f"token_file {token_file} may be read by others: chmod 600 it"
        raise SettingsInvalid(message)
    if not token:
        message = f"token_file {token_file} is empty"
        raise SettingsInvalid(message)
    return token
