"""The collector under measurement: a process of its own, and what is seen of it from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_cli.errors import CollectorUnreachable

_START_S: Final = 60.0
_STOP_S: Final = 120.0
_POLL_S: Final = 0.05
STORE: Final = "events.duckdb"
# Places in /proc/PID/stat behind the name of the program.
_USER_TICKS: Final = 11
_SYSTEM_TICKS: Final = 12


class Server(NamedTuple):
    """Where it answers, and its process."""

    url: str
    pid: int


class Peaks:
    """The most memory, the longest log and the largest file that were seen, looking every 50 ms on a thread of its own."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._status = Path(f"/proc/{pid}/status")
        self._hot = folder / STORE
        self._wal = folder / f"{STORE}.wal"
        self._done = threading.Event()
        self.rss_bytes = 0  # written by the thread alone, read after its end
        self.wal_bytes = 0  # as above
        self.hot_bytes = 0  # as above
        self.cpu_s = 0.0  # as above
        self._cpu_begin_s = _cpu_s(self._stat)
        self._thread = threading.Thread(target=self._run, name="kvtrail-bench-peaks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the figures stand then."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        """Look until told to stop."""
        while not self._done.wait(_POLL_S):
            self.rss_bytes = max(self.rss_bytes, _rss_bytes(self._status))
            self.wal_bytes = max(self.wal_bytes, _size_bytes(self._wal))
            self.hot_bytes = max(self.hot_bytes, _size_bytes(self._hot))
            self.cpu_s = max(self.cpu_s, _cpu_s(self._stat) - self._cpu_begin_s)


def _cpu_s(stat: Path) -> float:
    """The processor time that a process used, in user and kernel mode; 0 where nothing says."""
    try:
        fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")


def _rss_bytes(status: Path) -> int:
    """Memory that a process holds; 0 where nothing says."""
    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)


def _size_bytes(path: Path) -> int:
    """The size of a file; 0 while there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def serving(folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A collector on a free port of loopback that stores into the folder; ended in order, so that its file is whole.

    `variables` are settings beside ours, as `KVTRAIL_…`.

    Raises:
        CollectorUnreachable: it did not come up.
    """
    address = folder / "address"
    command = [sys.executable, "-m", "kvtrail_cli.main", "collector", "serve", "--store", str(folder / STORE)]
    command += ["--port", "0", "--address-file", str(address)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KVTRAIL_SEAL_AFTER_S": "0", **(variables or {})},
    )
    try:
        yield Server(_wait_for(process, address), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], address: Path) -> str:
    """The address that it writes once it can be called."""
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        if address.exists():
            return address.read_text(encoding="utf-8")
        time.sleep(_POLL_S)
    raise CollectorUnreachable("the collector of the benchmark did not start: try `kvtrail collector serve`")
