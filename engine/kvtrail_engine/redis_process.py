"""A redis-server of one's own on loopback, for comparisons and tests: private, in memory only, gone when it is closed."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from kvtrail_engine.errors import StorageError, map_os_errors

START_S = 10.0
POLL_S = 0.02
ATTEMPTS = 3


def find_redis_server() -> Path | None:
    """The program, if it is installed."""
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


class RedisProcess:
    """Starts the server when it is made, and ends it in `close`. Blocks for its start, well under a second as a rule.

    It listens on 127.0.0.1 alone and wants the password in `password_file`, drawn at random, mode 0600.

    Raises:
        StorageError: it is not installed, or does not start.
    """

    def __init__(self, directory: Path, options: Sequence[str] = ()) -> None:
        self._directory = directory
        self._options = tuple(options)
        self.password_file = directory / "password"
        with map_os_errors():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_private(self.password_file, secrets.token_hex(16))
        for attempt in range(ATTEMPTS):
            self.port = _free_port()
            self.process = self._launch()
            if self._is_up():
                return
            self.close()
            if attempt == ATTEMPTS - 1:
                message = f"redis-server did not start: {self._log_tail()}"
                raise StorageError(message)

    @property
    def url(self) -> str:
        """Its address, for `RemoteSettings`."""
        return f"redis://127.0.0.1:{self.port}/0"

    def relaunch(self) -> None:
        """Start it again on the same port, after it was killed: its memory is empty then.

        Raises:
            StorageError: it does not start.
        """
        self.process = self._launch()
        if not self._is_up():
            message = f"redis-server did not start again: {self._log_tail()}"
            raise StorageError(message)

    def close(self) -> None:
        """End it; twice is once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _launch(self) -> "subprocess.Popen[bytes]":
        """The process, with its settings in a private file: a password is never on a command line."""
        program = find_redis_server()
        if program is None:
            message = "redis-server is not installed"
            raise StorageError(message)
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            'save ""',
            "appendonly no",
            f'dir "{self._directory}"',
            f'logfile "{self._directory / "log"}"',
            f"requirepass {self.password_file.read_text()}",
            *self._options,
        ]
        config = self._directory / "redis.conf"
        with map_os_errors():
            _write_private(config, "\n".join(lines) + "\n")
            return subprocess.Popen([program, config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603

    def _is_up(self) -> bool:
        """Whether it takes connections, within the time that a start may take."""
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
            except OSError:
                time.sleep(POLL_S)
            else:
                return True
        return False

    def _log_tail(self) -> str:
        """What it said last."""
        log = self._directory / "log"
        return log.read_text(errors="replace")[-300:] if log.exists() else "it said nothing"


def _write_private(path: Path, text: str) -> None:
    """A file of mode 0600 with this text."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
