"""What attribution answers, in the shapes that the API and the command line publish."""

from enum import StrEnum
from typing import Final

import msgspec

from kvtrail_collector.ledger_parts import Component


class Measure(StrEnum):
    """What is slow: requests until their first token, or gaps between tokens."""

    TTFT = "ttft"
    GAPS = "gaps"


class Window(msgspec.Struct, frozen=True):
    """A stretch of time, by arrival: [start, end). `coverage` is the share of it that no hole in seq makes unknown."""

    start_ns: int
    end_ns: int
    requests: int
    coverage: float


class OtherSpike(msgspec.Struct, frozen=True):
    """Another stretch of time that was slow in the same run, and by itself: [start, end), by arrival."""

    start_ns: int
    end_ns: int
    requests: int


class EventRef(msgspec.Struct, frozen=True):
    """Names one event."""

    engine: str
    epoch: int
    rank: int
    seq: int


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong, on which basis, how sure, by which figures and events, and what helps."""

    code: str
    tier: str | None
    tenant: str | None
    component: Component | None
    share: float
    confidence: float
    basis: str
    window: Window
    evidence: dict[str, float | int | str]
    events: tuple[EventRef, ...]
    action: str
    also: tuple[str, ...] = ()


class Delta(msgspec.Struct, frozen=True):
    """How much more of one component the tail of the window has than that of the reference, with its interval."""

    component: Component
    tier: str | None
    excess_ms: float
    low_ms: float
    high_ms: float
    share: float


class BlameRow(msgspec.Struct, frozen=True):
    """So much of the waiting in a queue was behind work of this tenant and kind."""

    queue: str
    tenant: str | None
    kind: str
    waited_ns: int
    share: float


NO_CODE: Final = "one cause leads, but the events do not show the mechanism of any code for it"
"""Why there is no verdict on a cause that is sure."""


class Outcome(StrEnum):
    """What came of a question: a cause, the answer that nothing is slower, or neither."""

    EXPLAINED = "explained"
    NOTHING_SLOWER = "nothing_slower"
    UNDECIDED = "undecided"


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """What made the slow requests of a window slower than those of a reference.

    `outcome` says in a word what came of it. `window` is None where no spike was found; figures are None where they are not
    known, and `why_not` says why. `exemplars` are the requests that show it best by the engine's own texts for them, or as
    `epoch:rank:number` where it gives none; `exemplar_requests` are the same ones by that alone, which names no other.
    `notes` are what else a reader has to know: quantiles that are not known, requests that the reference has nothing like.
    `other_spikes` are those of a searched run that are not explained here: ask for each by its window. Monotonic times plus
    `clock_offset_ns` are wall times; it is None where they are of several clocks, or of a file.
    """

    outcome: Outcome = Outcome.UNDECIDED
    window: Window | None = None
    reference: Window | None = None
    quantile: float | None = None
    excess_tail_ms: float | None = None
    excess_quantile_ms: float | None = None
    mix_ms: float | None = None
    components: tuple[Delta, ...] = ()
    identified: bool = False
    why_not: str | None = None
    blame: tuple[BlameRow, ...] = ()
    exemplars: tuple[str, ...] = ()
    exemplar_requests: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    other_spikes: tuple[OtherSpike, ...] = ()
    measure: Measure = Measure.TTFT
    clock_offset_ns: int | None = None
    schema: int = 1
    device: str | None = None
