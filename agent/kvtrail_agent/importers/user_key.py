"""The key of imports by hand: a file of this user's own, made at the first import, so that the next names blocks the same."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.fleet_key import fleet_key
from kvtrail_agent.settings import default_spool_dir

_DRAWN_BYTES: Final = 32


def user_key_file() -> Path:
    """Beside the spool: `$XDG_STATE_HOME/kvtrail/fleet.key`, or below `~/.local/state`."""
    return default_spool_dir().parent / "fleet.key"


def user_key(path: Path) -> bytes:
    """The key in a file, which is made where it is not there; readable by its owner alone.

    Raises:
        SettingsInvalid: it cannot be made or read, or others may read it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
    except OSError as error:
        raise SettingsInvalid(f"key_file {path}: {error.strerror}; give another with --key-file") from error
    return fleet_key(path)


def _make(path: Path) -> None:
    """Make a key, whole or not at all: where another process makes one at the same moment, one of the two stands."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_DRAWN_BYTES))
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
