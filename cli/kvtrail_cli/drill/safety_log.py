"""The event log of a drill: what is asked of it, and how that becomes a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle
from kvtrail_engine.request import RequestResult, RequestSpec
from kvtrail_engine.settings import DeviceChoice, EngineSettings, RestorePolicy, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.clock import Clock
from kvtrail_schema.emitter import Emitter
from kvtrail_schema.events import Event
from kvtrail_schema.identity import Namespace

from kvtrail_cli.drill.safety_file import OwnFile, recording
from kvtrail_cli.drill.safety_shapes import SafetyDrill

BLOCK_TOKENS: Final = 32
PATIENCE_S: Final = 30.0
_NS_S: Final = 1e9
E = TypeVar("E", bound=Event)
Moment = Event | int | None
"""An event, or a time on the clock of events."""


def small_engine(data_dir: Path, device: DeviceChoice = DeviceChoice.AUTO, *, seed: int = 0) -> EngineSettings:
    """An engine that starts in no time: forty blocks on the gpu, as many on host, 256 on nvme; it restores what it can."""
    return EngineSettings(
        data_dir=data_dir,
        seed=seed,
        device=device,
        gpu=TierSettings(slots=40),
        host=TierSettings(slots=40),
        nvme=TierSettings(slots=256, workers=2),
        host_low_slots=8,
        restore_policy=RestorePolicy.RESTORE,
    )


def ask(number: int, blocks: int = 5, namespace: Namespace | None = None) -> RequestSpec:
    """A request for the prompt of this number; two numbers share no block."""
    prompt = np.random.default_rng(number).integers(0, 1024, blocks * BLOCK_TOKENS, dtype=np.int64)
    return RequestSpec(f"drill-{number}", prompt, 3, namespace=namespace)


def answer(engine: Engine, spec: RequestSpec) -> RequestResult:
    """Have a request answered, and wait until everything that follows from it is done."""
    result = engine.submit(spec).result(PATIENCE_S)
    settle(engine)
    return result


class EventLog(CollectingEmitter):
    """Keeps what an engine told, and, once the drill is over, what the recorder beside it wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.observers: Sequence[Emitter] = (self.as_emitter(),)
        self.file: OwnFile | None = None

    def first(self, kind: type[E], holds: Callable[[E], bool] = lambda _: True) -> E | None:
        """The first event of a kind for which something holds."""
        return next((event for event in self.of(kind) if holds(event)), None)

    def names(self) -> set[str]:
        """The kinds of events that are there."""
        return set(self.kinds())

    def kinds(self) -> Counter[str]:
        """How many there are of each kind."""
        return Counter(str(event.__struct_config__.tag) for event in self.events)

    def file_says(self, shows: Collection[str]) -> dict[str, bool]:
        """What must hold of the recorder's own file: each event once, and no broken promise but what the drill is about."""
        if self.file is None:
            return {"the recorder wrote a file": False}
        broken = self.file.broken(shows)
        judged = f"and diagnosing it finds {', '.join(shows) or 'no broken promise'}"
        return {
            "the recorder's file has each event once": self.file.is_whole and self.file.kinds() == self.kinds(),
            f"{judged} (found: {', '.join(broken)})" if broken else judged: not broken,
        }


@contextmanager
def logged(folder: Path, clock: Clock | None = None) -> Iterator[EventLog]:
    """A log, and a real recorder beside it, whose file is read when the block has ended. Give an engine its `observers`."""
    log = EventLog()
    with recording(folder / "recorder", clock) as written:
        log.observers = (log.as_emitter(), written.recorder)
        yield log
    log.file = written.read()


def result_of(  # noqa: PLR0917 - what a result is made of
    name: str,
    expected: str,
    found: Mapping[str, bool],
    moments: tuple[Moment, Moment, Moment],
    log: EventLog,
    shows: Collection[str] = (),
) -> SafetyDrill:
    """A result: what was found, in words, and how long noticing and acting took. `shows` are codes that the file must show."""
    touched, noticed, acted = moments
    held = {**found, **log.file_says(shows)}
    wrong = [text for text, holds in held.items() if not holds]
    observed = f"not so: {'; '.join(wrong)}" if wrong else "; ".join(held)
    return SafetyDrill(name, expected, observed, not wrong, _seconds(touched, noticed), _seconds(noticed, acted))


def _seconds(before: Moment, after: Moment) -> float | None:
    """From one moment to another; None where either is missing."""
    return None if before is None or after is None else (_t_ns(after) - _t_ns(before)) / _NS_S


def _t_ns(moment: Event | int) -> int:
    """When it was."""
    return moment if isinstance(moment, int) else moment.t_ns
