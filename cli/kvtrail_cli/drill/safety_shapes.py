"""What `kvtrail drill all` answers."""

from __future__ import annotations

import msgspec


class SafetyDrill(msgspec.Struct, frozen=True):
    """One drill. `detect_s` runs from the first event that the fault touches to the one that shows it was noticed, `act_s` from
    there to the one that shows what was done; absent where the drill did not get so far. `was_run` is false where it needs a
    program that is not installed; `observed` says which.
    """

    name: str
    expected: str
    observed: str
    passed: bool
    detect_s: float | None
    act_s: float | None
    was_run: bool = True


class SafetyDrills(msgspec.Struct, frozen=True):
    """All of them."""

    drills: tuple[SafetyDrill, ...]
    device: str
    floors: str
    schema: int = 1
