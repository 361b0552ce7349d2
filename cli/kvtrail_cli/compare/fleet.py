"""One engine a path, side by side; each stretch of a load goes to one after the other, so that drift hits all alike."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from kvtrail_engine.engine import Engine
from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.hints import Hints
from kvtrail_engine.proof import settle
from kvtrail_engine.request import RequestResult, RequestSpec
from kvtrail_engine.run import run_load
from kvtrail_engine.settings import EngineSettings
from kvtrail_schema.emitter import Emitter

from kvtrail_cli.compare.energy import NoMeter, energy_meter
from kvtrail_cli.compare.figures import Tally

ANSWER_S = 60.0


class Lane:
    """One path: its engine, and the tally of what counts."""

    def __init__(self, path: str, engine: Engine) -> None:
        self.path = path
        self.hint_lead_ns: int | None = None
        """So long before it comes each request is announced; None: it is not."""
        self.engine = engine
        self._meter = energy_meter(engine.device_label)
        reason = self._meter.reason if isinstance(self._meter, NoMeter) else None
        self.tally = Tally(path, engine.device_label, engine.settings.block_bytes, reason)

    def ask(self, spec: RequestSpec) -> RequestResult:
        """One request alone, not tallied; returns when its blocks lie where the path keeps them."""
        result = self.engine.submit(spec).result(ANSWER_S)
        settle(self.engine)
        return result

    def run(self, arrivals: Sequence[Arrival]) -> None:
        """A stretch of load, tallied; what it leaves to be written is waited for outside the measured time."""
        busy_ns, joules = self.engine.statistics().step_busy_ns, self._joules()
        hints = None if self.hint_lead_ns is None else Hints(self.hint_lead_ns)
        run = run_load(self.engine, arrivals, hints=hints, drain_timeout_s=ANSWER_S)
        tally = self.tally
        tally.results.extend(run.results)
        tally.elapsed_ns += run.ended_ns - run.started_ns
        tally.busy_ns += self.engine.statistics().step_busy_ns - busy_ns
        tally.energy_j += self._joules() - joules
        settle(self.engine)

    def _joules(self) -> float:
        """The device's meter; 0 where there is none."""
        return 0.0 if isinstance(self._meter, NoMeter) else self._meter.joules()


@contextmanager
def fleet(settings: Mapping[str, EngineSettings], observers: Mapping[str, Emitter] | None = None) -> Iterator[list[Lane]]:
    """Engines of these settings, by path, each in a folder of its own that is gone afterwards."""
    watching = observers or {}
    with ExitStack() as stack:
        lanes = []
        for path, given in settings.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kvtrail-compare-")))
            seen = [watching[path]] if path in watching else []
            lanes.append(Lane(path, stack.enter_context(Engine(replace(given, data_dir=folder), seen))))
        yield lanes


def warm_up(lanes: Sequence[Lane], specs: Sequence[RequestSpec]) -> Iterator[int]:
    """Fill every path's caches, all paths at the same time, since none of it is measured; yields what is done."""
    for spec in specs:
        for handle in [lane.engine.submit(spec) for lane in lanes]:
            handle.result(ANSWER_S)
        for lane in lanes:
            settle(lane.engine)
        yield len(lanes)


def turns(lanes: Sequence[Lane], number: int) -> list[Lane]:
    """Whose turn it is in a round: each round begins with another lane."""
    at = number % len(lanes)
    return [*lanes[at:], *lanes[:at]]
