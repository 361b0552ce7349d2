"""Chromium, a collector and a dashboard for tests: started for them, watched, and ended by them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from kvtrail_dashboards.serve import address, command
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, VERSION, BatchHeader, StreamState, encode_batch
from kvtrail_schema.clock import Clocks
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event, Evicted, SwapInQueued
from kvtrail_schema.identity import BlockId, EventId, Slot
from kvtrail_schema.reasons import EvictReason
from playwright.sync_api import ConsoleMessage, Page

from tests.collector.attribution.synthetic import Fault, Plan, simulate

CHROMIUM: Final = os.environ.get("KVTRAIL_TEST_CHROMIUM", "/usr/bin/chromium")
FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_SERVE: Final = """
import sys
from kvtrail_collector.serve import serve
from kvtrail_collector.settings import Settings
serve(Settings(store=sys.argv[1], port=0), on_bound=lambda address: print(address.url, flush=True))
"""
_ROWS_A_BATCH: Final = 20_000
_START_S: Final = 60
_EVICTION: Final = EventId(7)
# Streamlit looks for its server below the path of the page first, and then where it is.
_LOOKED_FOR: Final = ("/_stcore/health", "/_stcore/host-config")


class Served(NamedTuple):
    """Where a dashboard is, and its process."""

    url: str
    pid: int


@dataclass(slots=True)
class Seen:
    """A page, and what it complained of or asked elsewhere."""

    page: Page
    console: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self, home: str) -> None:
        """Note errors, and requests to any place but the dashboard."""
        self.page.on("console", lambda line: self._hear(line))  # noqa: PLW0108 - Playwright marks bound methods
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda asked: self._note(asked.url, home))

    def _hear(self, line: ConsoleMessage) -> None:
        """Keep what is an error or a warning."""
        looked_for = line.location["url"].endswith(_LOOKED_FOR) and "404" in line.text
        if line.type in {"error", "warning"} and not looked_for:
            self.console.append(line.text)

    def _note(self, url: str, home: str) -> None:
        """Keep an address that is neither the dashboard's nor inline."""
        if urlsplit(url).netloc != urlsplit(home).netloc and not url.startswith(("data:", "blob:")):
            self.elsewhere.append(url)


@contextmanager
def serving_collector(path: Path) -> Iterator[str]:
    """A collector in a process of its own; gives its address."""
    with subprocess.Popen([sys.executable, "-c", _SERVE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def serving_dashboard(collector: str, log: Path) -> Iterator[tuple[str, int]]:
    """The dashboard, started by the command that the project gives; gives its address and process."""
    port = _free_port()
    with log.open("wb") as output:
        words = command(port, collector)
        with subprocess.Popen(words, stdout=output.fileno(), stderr=output.fileno()) as process:
            try:
                _wait_until_healthy(address(port), log)
                yield address(port), process.pid
            finally:
                process.terminate()


def slow_run() -> list[Event]:
    """A run in which reads of nvme are slow for 20 s, and in which one eviction made every load necessary."""
    eviction = Evicted(block=BlockId(1), tier=Tier.GPU, slot=Slot(0), reason=EvictReason.CAPACITY, id=_EVICTION, t_ns=1)
    told = [eviction, *(_caused(event) for event in simulate(Plan(seed=1, fault=Fault.NVME_SLOW)).numbered())]
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(told, 1)]


def fill(url: str, events: Sequence[Event]) -> None:
    """Send a whole run, as its agent would have."""
    with httpx.Client(base_url=url, headers={"content-type": CONTENT_TYPE}, timeout=30) as client:
        for begin in range(0, len(events), _ROWS_A_BATCH):
            part = events[begin : begin + _ROWS_A_BATCH]
            client.post("/v1/events", content=_frame(part, events[-1])).raise_for_status()


def _caused(event: Event) -> Event:
    """A load with its cause."""
    return msgspec.structs.replace(event, cause=_EVICTION) if isinstance(event, SwapInQueued) else event


def _frame(part: Sequence[Event], last: Event) -> bytes:
    """One batch of a stream that ended just now."""
    header = BatchHeader(
        version=VERSION,
        engine="demo",
        epoch=7,
        rank=0,
        first_seq=part[0].seq,
        last_seq=part[-1].seq,
        count=len(part),
        produced=last.seq,
        clocks=Clocks(monotonic_ns=last.t_ns, wall_ns=time.time_ns(), error_ns=1),
        state=StreamState.STOPPED,
        drops=(),
    )
    return encode_batch(header, table_of(part))


def _wait_until_healthy(url: str, log: Path) -> None:
    """Return when the dashboard answers; fail with its log if it does not."""
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/_stcore/health", trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"the dashboard did not start: {log.read_text()}")


def _free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
