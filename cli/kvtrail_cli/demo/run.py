"""The demo itself: collector, recorded engine, a fault, and then the questions that an operator would ask."""

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.attribution_shapes import Attribution
from kvtrail_collector.loss_shapes import Loss
from kvtrail_engine.demo import demo_drill
from kvtrail_engine.drills.timer import ScheduledDrill

from kvtrail_cli.client import CollectorClient
from kvtrail_cli.commands import dashboard
from kvtrail_cli.demo.collector_process import running_collector
from kvtrail_cli.demo.route import DemoTransport, demo_route
from kvtrail_cli.demo.shapes import Demo, EventTotals, Injected
from kvtrail_cli.engine_profiles import Profile, TraceChoice, chat_profile, trace_profile
from kvtrail_cli.engine_session import Session, run_recorded
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.output import note, progress
from kvtrail_cli.quantiles import quantiles_ms

ENGINE = "demo"
RATE_PER_S = 35.0
_TRACE_SCALE = 16
_SETTLE_TIMEOUT_S = 20.0
_SETTLE_POLL_S = 0.2
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DemoChoice:
    """What to run and what to break."""

    fault: str
    seed: int
    duration_s: float
    trace: Path | None
    directory: Path
    transport: DemoTransport = DemoTransport.HTTP
    bootstrap: str | None = None


@contextmanager
def run_demo(choice: DemoChoice) -> Iterator[tuple[Demo, str]]:
    """Run the load to its end and explain it; yields the answer and the address of the collector, which ends afterwards."""
    directory = _fresh(choice.directory)
    with (
        demo_route(choice.transport, choice.bootstrap, directory) as route,
        running_collector(directory, *route.collector_flags) as url,
    ):
        note(f"collector at {url}; seed {choice.seed}, fault {choice.fault}")
        yield _answer(choice, directory, url, route.address or url), url


def _answer(choice: DemoChoice, directory: Path, url: str, transport: str) -> Demo:
    """Run, then ask. What was injected goes into the answer, never into a question."""
    profile = _profile(choice, directory)
    load_s = profile.arrivals[-1].at_ns / _NS_PER_S
    drill = demo_drill(choice.fault, choice.seed, load_s)
    agent = AgentSettings(engine=ENGINE, transport=transport, ring_dir=directory / "rings", spool_dir=directory / "spool")
    note(profile.settings.floors_text())
    with progress(f"{ENGINE}: requests answered") as advance:
        session = run_recorded(profile.settings, profile.arrivals, agent, advance, drill=drill)
    with CollectorClient(url) as collector:
        loss = _settled(collector, session)
        attribution = collector.get("/v1/attribution", Attribution, engine=ENGINE)
    result = session.result
    return Demo(
        requests=len(result.results),
        events=_totals(loss),
        ttft_ms=quantiles_ms(result.ttft_ns),
        attribution=attribution,
        verdicts=attribution.verdicts,
        injected=_injected(choice.fault, drill, result.started_ns),
        seed=choice.seed,
        floors=result.floors,
        balanced=loss.balanced and session.delivered,
        restored_blocks={tier.name.lower(): blocks for tier, blocks in result.restored_blocks.items()},
        device=result.device,
    )


def _profile(choice: DemoChoice, directory: Path) -> Profile:
    """The engine and its load: generated chats, or the operator's trace squeezed into the demo's time."""
    tiers = directory / "tiers"
    if choice.trace is None:
        return chat_profile(choice.seed, tiers, choice.duration_s, RATE_PER_S)
    limit = int(choice.duration_s * RATE_PER_S)
    whole = trace_profile(TraceChoice(choice.trace, _TRACE_SCALE, 1.0, limit, skip_bad_lines=False), choice.seed, tiers)
    if not whole.arrivals:
        message = f"{choice.trace}: no request to run"
        raise InputInvalid(message)
    speed = max(whole.arrivals[-1].at_ns / _NS_PER_S, 1.0) / choice.duration_s
    return trace_profile(TraceChoice(choice.trace, _TRACE_SCALE, speed, limit, skip_bad_lines=False), choice.seed, tiers)


def _fresh(directory: Path) -> Path:
    """The demo's directory, emptied of an earlier demo. A directory that is no demo's is left alone.

    Raises:
        InputInvalid: the directory holds something else.
    """
    mark = directory / ".kvtrail-demo"
    if directory.exists() and any(directory.iterdir()) and not mark.exists():
        message = f"--dir {directory} holds files that are no demo's: choose an empty or a new directory"
        raise InputInvalid(message)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)
    mark.touch()
    return directory.absolute()


def _settled(collector: CollectorClient, session: Session) -> Loss:
    """The books once nothing is on the way any more, or as they are after a bounded wait."""
    until = time.monotonic() + _SETTLE_TIMEOUT_S
    while True:
        loss = collector.get("/v1/loss", Loss)
        own = [stream for stream in loss.streams if stream.epoch == session.epoch and stream.produced >= session.produced]
        if (own and loss.balanced and own[0].in_flight == 0) or time.monotonic() > until:
            return loss
        time.sleep(_SETTLE_POLL_S)


def _totals(loss: Loss) -> EventTotals:
    """The books of all streams together."""
    return EventTotals(
        produced=sum(stream.produced for stream in loss.streams),
        stored=sum(stream.stored for stream in loss.streams),
        dropped=sum(drop.count for stream in loss.streams for drop in stream.dropped),
        unaccounted=sum(stream.unaccounted for stream in loss.streams),
    )


def _injected(fault: str, drill: ScheduledDrill | None, origin_ns: int) -> Injected:
    """What was broken, and when."""
    if drill is None:
        return Injected(fault, None, None, None)
    tier = drill.drill.tier
    return Injected(fault, None if tier is None else tier.name.lower(), origin_ns + drill.start_ns, origin_ns + drill.end_ns)


def watch_dashboard(collector_url: str) -> None:
    """Serve the dashboard in front of the demo's collector until Ctrl-C."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = dashboard.start(collector_url, port, None)
    note(f"\ndashboard: http://127.0.0.1:{port}   collector: {collector_url}   (Ctrl-C ends both)")
    try:
        process.wait()
    except KeyboardInterrupt:
        note("ending")
    finally:
        dashboard.stop(process)
