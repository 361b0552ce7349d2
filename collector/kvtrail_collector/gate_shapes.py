"""What `kvtrail gate` and `GET /v1/gates` answer, in the shape that both publish; loads no database."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class GateResult(StrEnum):
    """What a condition, or all of them, come to."""

    PASS = "pass"  # noqa: S105 - a name of a result
    FAIL = "fail"
    UNDECIDED = "undecided"


class GateEvent(msgspec.Struct, frozen=True):
    """An event behind a figure of the candidate; `kvtrail why` and the page of the event show it."""

    engine: str
    epoch: int
    rank: int
    seq: int


class Condition(msgspec.Struct, frozen=True):
    """One condition: both figures, the interval (95 %) of what is compared with the threshold, and what follows."""

    name: str
    baseline: float | None
    candidate: float | None
    low: float | None
    high: float | None
    threshold: float
    result: GateResult
    events: tuple[GateEvent, ...] = ()
    note: str = ""


class ManifestDiff(msgspec.Struct, frozen=True):
    """A member of the manifests that differs; as JSON, absent where only one has it."""

    member: str
    baseline: str | None
    candidate: str | None


class Gate(msgspec.Struct, frozen=True):
    """Whether a candidate may take the place of a baseline."""

    result: GateResult
    conditions: tuple[Condition, ...]
    manifest_diff: tuple[ManifestDiff, ...]
    device: str | None = None
    schema: int = 1
