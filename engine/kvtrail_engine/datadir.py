"""An engine's folder on disk: one engine at a time, private."""

import fcntl
import os
from pathlib import Path

from kvtrail_engine.errors import SettingsError, map_os_errors


class DataDir:
    """Holds the folder from its making to `close`; the lock goes with the process, however it ends."""

    def __init__(self, path: Path) -> None:
        with map_os_errors():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "engine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            os.close(self._lock)
            message = f"data_dir {path} belongs to another engine that runs; give each its own"
            raise SettingsError(message) from exc
        self.key_file = path / "identity.key"
        self.journal_file = path / "identity.jsonl"
        self.nvme = path / "nvme"

    def close(self) -> None:
        """Let another engine have the folder."""
        os.close(self._lock)
