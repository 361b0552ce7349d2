"""What `kvtrail drill accuracy` answers (OUTPUTS, `drill`), and the record that it keeps of each run."""

import msgspec


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run, judged: what was broken, what was found first, and whether that is right.

    `faults` are the faults that were injected; `mix-shift` among them says that the load shifted too. `lift` is by how much
    the tail grew in truth, as a share of the reference's; None where it cannot be known. `others_busy` is the share of the
    machine that other processes took during a live run. `judged_by` is the fingerprint of the code that judged it.
    """

    name: str
    faults: tuple[str, ...]
    seed: int
    strength: float
    requests: int
    lift: float | None
    found: str | None
    tier: str | None = None
    tenant: str | None = None
    is_right: bool
    codes: tuple[str, ...] = ()
    why_not: str | None = None
    unattributed_p99: float | None = None
    seconds: float = 0.0
    others_busy: float | None = None
    judged_by: str | None = None


class Rate(msgspec.Struct, frozen=True):
    """A share with its 95 % interval (Wilson), and what it is a share of; None where it is of nothing."""

    value: float | None
    low: float | None
    high: float | None
    count: int
    of: int


class Cell(msgspec.Struct, frozen=True):
    """So many runs with this fault got this first verdict; `found` is None where nothing was said."""

    injected: str
    found: str | None
    tier: str | None
    runs: int
    right: int


class FaultRate(msgspec.Struct, frozen=True):
    """One fault, or pair of faults: how often the first verdict was right, and by how much the tail grew."""

    injected: str
    runs: int
    right: int
    abstained: int
    lift_p50: float | None


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Precision and recall of the first verdict.

    Precision is over runs with a verdict, recall over all; both leave out runs without a fault, and runs whose tail grew by
    less than `least_lift`. A false alarm is a run without a fault, and without a shift of the mix, that got any verdict.
    `disturbed` are runs during which others took more than a tenth of the machine: say little, run them again on a quiet one.
    """

    mode: str
    seeds: str
    runs: int
    least_lift: float
    top1_precision: Rate
    top1_recall: Rate
    mix_precision: Rate
    both_named: Rate
    false_alarm_rate: Rate
    abstained: int
    unattributed_p99: float | None
    confusion: tuple[Cell, ...]
    faults: tuple[FaultRate, ...]
    wrong: tuple[str, ...]
    disturbed: tuple[str, ...] = ()
    device: str = "cpu-emulated"
    schema: int = 1
