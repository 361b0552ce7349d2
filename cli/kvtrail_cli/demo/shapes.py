"""What `kvtrail demo` answers (OUTPUTS, `demo`)."""

import msgspec
from kvtrail_collector.attribution_shapes import Attribution, Verdict

from kvtrail_cli.quantiles import Quantiles


class EventTotals(msgspec.Struct, frozen=True):
    """The books of the demo's one stream; produced = stored + dropped + unaccounted."""

    produced: int
    stored: int
    dropped: int
    unaccounted: int


class Injected(msgspec.Struct, frozen=True):
    """What was broken, and when, on the clock of the engine. Known to the demo alone; what diagnoses never sees it."""

    fault: str
    tier: str | None
    start_ns: int | None
    end_ns: int | None


class Demo(msgspec.Struct, frozen=True):
    """The whole answer."""

    requests: int
    events: EventTotals
    ttft_ms: Quantiles
    attribution: Attribution
    verdicts: tuple[Verdict, ...]
    injected: Injected
    seed: int
    floors: str
    balanced: bool
    restored_blocks: dict[str, int]
    device: str
    schema: int = 1
