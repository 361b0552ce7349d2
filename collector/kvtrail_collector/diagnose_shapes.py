"""What `kvtrail diagnose` and `GET /v1/verdicts` answer, in the shape that both publish; loads no database."""

import msgspec

from kvtrail_collector.attribution_shapes import OtherSpike, Verdict, Window
from kvtrail_collector.coverage import Missing


class Verdicts(msgspec.Struct, frozen=True):
    """What is wrong, most important first; how much of what happened was seen; and what was not there to judge by.

    `window` is that of the spike, where one was found, else all that was looked at. `other_spikes` were found in the same run,
    and are not what the verdicts with windows are about. `unexplained` says why a spike that was found has no verdict: that is
    no answer that all is well. `notes` are what a reader of the spike has to know.
    """

    coverage: float
    window: Window | None
    verdicts: tuple[Verdict, ...]
    missing: tuple[Missing, ...]
    other_spikes: tuple[OtherSpike, ...] = ()
    device: str | None = None
    unexplained: str | None = None
    notes: tuple[str, ...] = ()
    schema: int = 1
