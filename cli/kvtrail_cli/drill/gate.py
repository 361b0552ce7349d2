"""`kvtrail drill gate`: real runs of the engine, some worse on purpose and some not: does the gate tell them apart?

Baselines are used by several candidates, since nothing of a comparison depends on whose turn it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.gate_shapes import Gate, GateResult

from kvtrail_cli.commands.gate import gate_of_folders
from kvtrail_cli.drill.gate_load import EQUAL, REGRESSIONS, gate_arrivals, gate_settings
from kvtrail_cli.drill.gate_shapes import GateDrill, GateRun
from kvtrail_cli.drill.standstill import Standstill
from kvtrail_cli.engine_session import Session, run_recorded
from kvtrail_cli.errors import InputInvalid
from kvtrail_cli.output import Advance

_BASELINES: Final = 4
_LONGEST_STANDSTILL_S: Final = 0.05
_TRIES: Final = 5


class _Recorded(NamedTuple):
    """One run: where its frames lie, what came of it, and how often it was made."""

    events: Path
    session: Session
    tries: int = 1


@dataclass(frozen=True, slots=True)
class GatePlan:
    """So many candidates of each sort, and how long each run is."""

    runs: int
    first_seed: int
    duration_s: float = 12.0

    def candidates(self) -> Iterator[tuple[int, str]]:
        """The seed and the change of each candidate; a change after the other."""
        names = list(REGRESSIONS)
        for number in range(self.runs):
            yield number % _BASELINES, EQUAL
            yield number % _BASELINES, names[number // _BASELINES % len(names)]


def run_gates(plan: GatePlan, advance: Advance) -> GateDrill:
    """Record baselines and candidates one after another, and compare. Blocks for some seconds more than a run's length each.

    Raises:
        AgentError, EngineError: a part cannot start, or failed.
        InputInvalid: a run lost events.
    """
    began_s = time.monotonic()
    candidates = list(plan.candidates())
    found: list[GateRun] = []
    with TemporaryDirectory(prefix="kvtrail-gate-") as text:
        folder = Path(text)
        baselines: dict[int, _Recorded] = {}
        for number, (seed, change) in enumerate(candidates):
            advance(number, len(candidates))
            if seed not in baselines:
                baselines[seed] = _record(plan, folder / f"baseline-{seed}", plan.first_seed + seed, EQUAL)
            recorded = _record(plan, folder / f"candidate-{number}", plan.first_seed + seed, change)
            gate = gate_of_folders(baselines[seed].events, recorded.events, [])
            found.append(_judged(change, plan.first_seed + seed, gate, recorded.tries))
    advance(len(candidates), len(candidates))
    return gates_of(found, baselines[0].session, time.monotonic() - began_s)


def run_worse(plan: GatePlan, change: str) -> GateRun:
    """One baseline and one candidate that is worse. Raises as `run_gates`."""
    with TemporaryDirectory(prefix="kvtrail-gate-") as folder:
        baseline = _record(plan, Path(folder) / "baseline", plan.first_seed, EQUAL)
        candidate = _record(plan, Path(folder) / "candidate", plan.first_seed, change)
        gate = gate_of_folders(baseline.events, candidate.events, [])
    return _judged(change, plan.first_seed, gate, candidate.tries)


def gates_of(found: list[GateRun], session: Session, seconds: float) -> GateDrill:
    """Sum runs up. Pure."""
    equal = [run for run in found if run.change == EQUAL]
    worse = [run for run in found if run.change != EQUAL]
    return GateDrill(
        runs=tuple(found),
        equal_passed=sum(run.is_right for run in equal),
        equal=len(equal),
        regressions_failed=sum(run.is_right for run in worse),
        regressions=len(worse),
        seconds=round(seconds, 1),
        passed=all(run.is_right for run in found),
        device=session.result.device,
        floors=session.result.floors,
    )


def _record(plan: GatePlan, folder: Path, seed: int, change: str) -> _Recorded:
    """One run, recorded, and again where the machine stood still in it; where its frames lie."""
    for number in range(_TRIES):
        with Standstill() as standstill:
            recorded = _record_once(plan, folder / str(number), seed, change)
        result = recorded.session.result
        if standstill.longest_s(result.started_ns, result.ended_ns) <= _LONGEST_STANDSTILL_S:
            break
    return recorded._replace(tries=number + 1)


def _record_once(plan: GatePlan, folder: Path, seed: int, change: str) -> _Recorded:
    """One try.

    Raises:
        InputInvalid: it lost events.
    """
    events = folder / "events"
    settings = gate_settings(seed, folder / "tiers", change)
    agent = AgentSettings(engine=change, transport=events.as_uri(), ring_dir=folder / "rings", spool_dir=folder / "spool")
    session = run_recorded(settings, gate_arrivals(seed, plan.duration_s), agent, lambda _done, _total: None)
    if not session.delivered:
        message = f"{change}, seed {seed}: the run's events were not all delivered; run it again"
        raise InputInvalid(message)
    return _Recorded(events, session)


def _judged(change: str, seed: int, gate: Gate, tries: int) -> GateRun:
    """What a gate made of a candidate, and what it should."""
    expected = GateResult.PASS if change == EQUAL else GateResult.FAIL
    by_result = {
        result: tuple(each.name for each in gate.conditions if each.result is result)
        for result in (GateResult.FAIL, GateResult.UNDECIDED)
    }
    failed, undecided = by_result[GateResult.FAIL], by_result[GateResult.UNDECIDED]
    return GateRun(change, seed, gate.result.value, expected.value, failed, undecided, tries)
