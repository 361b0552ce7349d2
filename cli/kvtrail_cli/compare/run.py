"""Runs the comparison: baselines first, then each load on every path in turn."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kvtrail_engine.modes import Mode, mode_settings
from kvtrail_engine.redis_process import RedisProcess, find_redis_server
from kvtrail_engine.request import RequestResult
from kvtrail_engine.settings import EngineSettings, RemoteSettings

from kvtrail_cli.compare.baselines import Baselines
from kvtrail_cli.compare.figures import TIE_TEXT, Tally, outputs_equal, winners
from kvtrail_cli.compare.fleet import fleet, turns, warm_up
from kvtrail_cli.compare.parameter import parse_sweep, with_parameter
from kvtrail_cli.compare.plan import SCENARIOS, Load, compare_settings, remote_settings
from kvtrail_cli.compare.shapes import Baseline, Compare, ScenarioResult, SkippedPath, Sweep
from kvtrail_cli.compare.sweep import run_sweep
from kvtrail_cli.errors import PartMissing
from kvtrail_cli.output import Advance

REQUIRE_REAL = "KVTRAIL_REQUIRE_REAL"
NO_REDIS = "no redis-server is installed here; install it, or name one by --remote-url"
STATEMENTS = {
    "cuda": "Measured on a CUDA device; the tiers below it have the floors that are named, where they have any.",
    "cpu-emulated": "Measured on a CPU (cpu-emulated): floors stand in for devices. It says how the paths compare under these"
    " floors, and nothing about any GPU.",
}


@dataclass(frozen=True, slots=True)
class CompareChoice:
    """What to compare."""

    requests: int
    """On each path, over all scenarios."""
    seed: int
    slo_ttft_ms: float
    sweep: str | None = None
    sweep_path: str = Mode.NVME.value
    remote_url: str | None = None
    remote_password_file: Path | None = None

    @property
    def per_scenario(self) -> int:
        """Requests of one scenario on one path."""
        return max(self.requests // len(SCENARIOS), 1)


@dataclass(frozen=True, slots=True)
class _Collected:
    """What the parts of a comparison left."""

    baselines: tuple[Baseline, ...]
    scenarios: tuple[ScenarioResult, ...]
    totals: dict[str, Tally]
    results: dict[str, list[RequestResult]]


def run_compare(choice: CompareChoice, advance: Advance) -> Compare:
    """The whole comparison. Blocks for its length: some seconds for each ten requests.

    Raises:
        PartMissing: no remote can be had, and `KVTRAIL_REQUIRE_REAL` forbids to leave it out.
        InputInvalid, EngineError: the sweep names what is no setting, or an engine cannot start.
    """
    with remote_of(choice) as remote, tempfile.TemporaryDirectory(prefix="kvtrail-compare-") as folder:
        base = compare_settings(choice.seed, Path(folder))
        modes = {mode: mode_settings(base, mode, remote) for mode in Mode if mode is not Mode.REMOTE or remote is not None}
        _check_sweep(base, choice)
        collected = _collect({mode.value: settings for mode, settings in modes.items()}, choice, advance)
        sweep = _sweep(modes, choice, advance)
    paths = tuple(tally.figures(choice.slo_ttft_ms) for tally in collected.totals.values())
    device = paths[0].device
    return Compare(
        outputs_equal=outputs_equal(collected.results.values()),
        paths=paths,
        baselines=collected.baselines,
        scenarios=collected.scenarios,
        slo_ttft_ms=choice.slo_ttft_ms,
        tie=TIE_TEXT,
        statement=STATEMENTS[device],
        floors=replace(base, remote=remote).floors_text(),
        seed=choice.seed,
        device=device,
        skipped=() if remote is not None else (SkippedPath(Mode.REMOTE.value, NO_REDIS),),
        sweep=sweep,
    )


@contextmanager
def remote_of(choice: CompareChoice) -> Iterator[RemoteSettings | None]:
    """The operator's server, or one of our own; None where there is none."""
    if choice.remote_url is not None:
        yield remote_settings(choice.remote_url, choice.remote_password_file)
    elif find_redis_server() is not None:
        with tempfile.TemporaryDirectory(prefix="kvtrail-redis-") as folder, RedisProcess(Path(folder)) as server:
            yield remote_settings(server.url, server.password_file)
    elif os.environ.get(REQUIRE_REAL) == "1":
        message = f"the path remote cannot be measured: {NO_REDIS} ({REQUIRE_REAL}=1 forbids to leave it out)"
        raise PartMissing(message)
    else:
        yield None


def _collect(settings: dict[str, EngineSettings], choice: CompareChoice, advance: Advance) -> _Collected:
    """Baselines, then the scenarios one after the other, each on engines that are new."""
    with fleet(settings) as lanes:
        baselines = Baselines(lanes, choice.seed)
        warm_up = sum(scenario.documents for scenario in SCENARIOS)
        total = baselines.total + len(lanes) * (len(SCENARIOS) * choice.per_scenario + warm_up)
        done = baselines.run(advance, 0, total)
        results = {
            lane.path: [r for (path, _), found in baselines.answers.items() if path == lane.path for r in found]
            for lane in lanes
        }
        totals = {lane.path: lane.tally for lane in lanes}
    scenarios = []
    for number in range(len(SCENARIOS)):
        tallies, done = _scenario(settings, Load(choice.seed, number, choice.per_scenario), advance, done, total)
        figures = tuple(tally.figures(choice.slo_ttft_ms) for tally in tallies)
        scenario = SCENARIOS[number]
        scenarios.append(
            ScenarioResult(
                scenario.name, scenario.prefix_tokens, scenario.documents, scenario.rate_per_s, winners(figures), figures
            )
        )
        for tally in tallies:
            totals[tally.path] = totals[tally.path].joined(tally)
            results[tally.path].extend(tally.results)
    return _Collected(baselines.figures(), tuple(scenarios), totals, results)


def _scenario(
    settings: dict[str, EngineSettings], load: Load, advance: Advance, done: int, total: int
) -> tuple[list[Tally], int]:
    """One load: the caches are filled, then its stretches go to every path in turn."""
    with fleet(settings) as lanes:
        for answered in warm_up(lanes, load.warm_up):
            done += answered
            advance(done, total)
        for number, stretch in enumerate(load.rounds()):
            for lane in turns(lanes, number):
                lane.run(stretch)
                done += len(stretch)
                advance(done, total)
        return [lane.tally for lane in lanes], done


def _check_sweep(base: EngineSettings, choice: CompareChoice) -> None:
    """Hear of a wrong name or value before a minute was spent."""
    if choice.sweep is not None:
        name, values = parse_sweep(choice.sweep)
        for value in values:
            with_parameter(base, name, value).check()


def _sweep(modes: dict[Mode, EngineSettings], choice: CompareChoice, advance: Advance) -> Sweep | None:
    """The sweep that was asked for."""
    if choice.sweep is None:
        return None
    name, values = parse_sweep(choice.sweep)
    mode = Mode(choice.sweep_path)
    requests = choice.per_scenario
    return run_sweep(modes[mode], mode, name, values, seed=choice.seed, requests=requests, advance=advance)
