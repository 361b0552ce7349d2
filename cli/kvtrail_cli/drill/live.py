"""`kvtrail drill accuracy --live`: the reference engine under load, struck by each fault at each strength, one by one."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pyarrow as pa
from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.facts_names import namespaces_of
from kvtrail_collector.facts_rows import rows_of_table
from kvtrail_engine.drills.profile import Drilled, Scenario, drilled
from kvtrail_engine.drills.registry import NO_DRILL, Strength
from kvtrail_schema.kinds import Kind

from kvtrail_cli.drill.judge import Judged, Truth, judge
from kvtrail_cli.drill.machine import CpuTimes, others_share
from kvtrail_cli.drill.recordings import StoredTruth, complete, events_folder, table_of, truth_of
from kvtrail_cli.drill.results import Results
from kvtrail_cli.engine_session import Session, run_recorded
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.output import Advance

ENGINE: Final = "drilled"
_NEIGHBOUR: Final = "-neighbour"
Report = Callable[[Judged], None]


@dataclass(frozen=True, slots=True)
class LivePlan:
    """Which runs are wanted: each fault with each strength and seed."""

    faults: tuple[str, ...]
    strengths: tuple[Strength, ...]
    seeds: tuple[int, ...]

    def scenarios(self) -> Iterator[Scenario]:
        """The runs; seed by seed, so that what is cut short has seen every fault."""
        for seed in self.seeds:
            for strength in self.strengths:
                yield from (Scenario(fault, seed, strength) for fault in self.faults)


def name_of(scenario: Scenario) -> str:
    """The name under which a run is kept."""
    return f"{scenario.fault}-{scenario.strength.name.lower()}-{scenario.seed}"


def run_live(  # noqa: PLR0917 - what to do, where, and whom to tell
    plan: LivePlan, folder: Path, results: Results, advance: Advance, report: Report, at_most: int | None = None
) -> None:
    """Make every run that is not there; a recording whose judgement is missing is judged and not run again.

    Blocks for a little under a minute a run.

    Raises:
        InputInvalid: a run lost events, so that nothing can be said about it.
        EngineError: an engine cannot start, or failed.
    """
    missing = [scenario for scenario in plan.scenarios() if not results.has(name_of(scenario))][:at_most]
    for done, scenario in enumerate(missing):
        advance(done, len(missing))
        own = folder / name_of(scenario)
        if truth_of(own) is None:
            record(scenario, own)
        judged = judge_recording(own)
        results.add(judged.run)
        report(judged)
    advance(len(missing), len(missing))


def record(scenario: Scenario, folder: Path) -> None:
    """One run of the engine, recorded into a folder."""
    events = events_folder(folder)
    began_s, before = time.monotonic(), CpuTimes.now()
    with TemporaryDirectory(prefix="kvtrail-drill-") as private, drilled(scenario, Path(private)) as run:
        agent = AgentSettings(
            engine=ENGINE,
            transport=f"file://{events.absolute()}",
            ring_dir=Path(private) / "rings",
            spool_dir=Path(private) / "spool",
        )
        session = run_recorded(run.settings, run.arrivals, agent, lambda _done, _total: None, drill=run.drill, hints=run.hints)
    if not session.delivered:
        message = f"{folder}: the run's events were not all delivered; run it again"
        raise InputInvalid(message)
    others = others_share(before, CpuTimes.now())
    complete(folder, msgspec.structs.replace(_truth(scenario, run, session, time.monotonic() - began_s), others_busy=others))


def _truth(scenario: Scenario, run: Drilled, session: Session, seconds: float) -> StoredTruth:
    """What was injected, when."""
    drill, origin_ns = run.drill, session.result.started_ns
    return StoredTruth(
        faults=(scenario.fault,),
        seed=scenario.seed,
        strength=0.0 if drill is None else drill.drill.value,
        start_ns=None if drill is None else origin_ns + drill.start_ns,
        end_ns=None if drill is None else origin_ns + drill.end_ns,
        seconds=seconds,
    )


def judge_recording(folder: Path) -> Judged:
    """Diagnose a recording.

    Raises:
        InputInvalid: there is no whole recording.
    """
    stored = truth_of(folder)
    if stored is None:
        message = f"{folder} holds no whole recording"
        raise InputInvalid(message)
    table = table_of(folder)
    moments = None if stored.start_ns is None or stored.end_ns is None else (stored.start_ns, stored.end_ns)
    truth = Truth(folder.name, stored.faults, stored.seed, stored.strength, moments, _neighbour(table))
    judged = judge(table, truth, stored.seconds)
    return judged._replace(run=msgspec.structs.replace(judged.run, others_busy=stored.others_busy))


def _neighbour(table: pa.Table) -> str | None:
    """The tenant of requests whose name is a neighbour's, as its namespace declares it: hashed."""
    rows = rows_of_table(table)
    arrived = rows.of_kinds(Kind.REQUEST_ARRIVED)
    own = [place for place in arrived.tolist() if _NEIGHBOUR in (rows.text[place] or "")]
    names = namespaces_of(rows)
    return next((names[int(space)].tenant for space in rows.ids["ns"][own].tolist() if int(space) in names), None)


def faults_of(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The faults that are named, or all; the run without one is last."""
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"there is no fault {', '.join(unknown)}; there are {', '.join(known)}"
        raise InputInvalid(message)
    chosen = tuple(names or known)
    return (*(name for name in chosen if name != NO_DRILL), *(name for name in chosen if name == NO_DRILL))
