"""The real parts of one world, each a process of its own, and a wire between them: what a round of chaos hurts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from kvtrail_agent import ring_layout as layout
from kvtrail_agent.courier import InlineCourier
from kvtrail_agent.errors import RingError
from kvtrail_agent.recovery import recover
from kvtrail_agent.ring_file import open_ring
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.transports import open_transport
from kvtrail_collector.settings import Settings
from kvtrail_schema.clock import SystemClock

from tests.chaos import engine_process
from tests.chaos.engine_process import Orders
from tests.chaos.routes import Route

_ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
_SERVE: Final = """
import sys
import msgspec
from kvtrail_collector.serve import serve
from kvtrail_collector.settings import Settings
serve(msgspec.json.decode(sys.argv[1], type=Settings), on_bound=lambda address: print(address.url, flush=True))
"""


class CollectorProcess:
    """A collector on one port over one store, through all its deaths."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        """Start the process; returns once it listens."""
        command = [sys.executable, "-c", _SERVE, msgspec.json.encode(self.settings).decode()]
        log = Path(self.settings.store).with_name("collector.log")
        with log.open("ab") as said:
            process = subprocess.Popen(command, env=_ENVIRONMENT, stdout=subprocess.PIPE, stderr=said, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http"), f"the collector did not start: {log.read_text()[-2000:]}"
        return process

    def restart(self) -> None:
        """Start it again after its death."""
        self.end(signal.SIGKILL)
        self.process = self._start()

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait until it is over."""
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def streams(self, engine: str) -> list[dict[str, Any]]:
        """What its books say of the streams of one engine."""
        answer = httpx.get(f"http://127.0.0.1:{self.settings.port}/v1/loss", timeout=30, trust_env=False)
        return [stream for stream in answer.json()["streams"] if stream["engine"] == engine]


class World:
    """A collector, a route to it, and one engine at a time, with the shipper that its recorder starts."""

    def __init__(self, folder: Path, port: int, route: Route) -> None:
        self.folder, self.route = folder, route
        self.rings, self.spool, self.journals = folder / "rings", folder / "spool", folder / "journals"
        for path in (self.rings, self.journals):
            path.mkdir(mode=0o700)
        self.collector = CollectorProcess(route.settings(folder / "events.duckdb", port))
        self.proxy = route.proxy
        self.engine: subprocess.Popen[bytes] | None = None

    def begin(self, orders: Callable[["World"], Orders]) -> None:
        """Start the engine of a round."""
        path = self.folder / "orders.json"
        path.write_bytes(msgspec.json.encode(orders(self)))
        self.engine = subprocess.Popen([sys.executable, engine_process.__file__, str(path)], env=_ENVIRONMENT)
        wait_until(self.shippers, 30, "the engine's shipper")

    def shippers(self) -> list[int]:
        """The shippers at work on rings of this world, by process id."""
        found = []
        for path in self.rings.glob("*.ring"):
            with suppress(RingError):
                ring = open_ring(path)
                pid = ring.word(layout.READER_PID)
                ring.close()
                if _is_shipper(pid, path):
                    found.append(pid)
        return found

    def settle(self, timeout_s: float = 60) -> None:
        """Wait until the engine is gone and nothing of it waits on this host: what nobody comes back for is sent by hand."""
        assert self.engine is not None
        self.engine.wait(30)
        until = time.monotonic() + timeout_s
        while self._waiting():
            assert time.monotonic() < until, f"still there: {self._waiting()}"
            time.sleep(0.05)
            if not self.shippers():
                self._recover()

    def _waiting(self) -> list[Path]:
        """Rings and spools that are still there."""
        spools = [path for path in self.spool.iterdir() if path.is_dir()] if self.spool.is_dir() else []
        return [*self.rings.glob("*.ring"), *spools]

    def _recover(self) -> None:
        """Send what was left, as `kvtrail agent recover` does."""
        settings = AgentSettings(engine="recovered", transport=self.route.transport)
        transport = open_transport(settings.transport)
        for directory in (self.rings, self.spool):
            if directory.is_dir():
                recover(directory, InlineCourier(transport, time.sleep), settings, clock=SystemClock(), patience_ns=10**9)
        transport.close()

    def close(self) -> None:
        """End what still runs."""
        if self.engine is not None and self.engine.poll() is None:
            self.engine.kill()
            self.engine.wait()
        for pid in self.shippers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.collector.end()
        self.route.close()


def _is_shipper(pid: int, ring: Path) -> bool:
    """Whether a process is the shipper of a ring: an id in a file may belong to somebody else by now."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return str(ring.with_suffix(".json")).encode() in words


def wait_until(there: Callable[[], object], timeout_s: float, what: str) -> None:
    """Wait until something holds, or fail with its name."""
    until = time.monotonic() + timeout_s
    while not there():
        assert time.monotonic() < until, f"no {what} within {timeout_s} s"
        time.sleep(0.02)
