"""What `kvtrail drill gate` answers."""

from __future__ import annotations

import msgspec


class GateRun(msgspec.Struct, frozen=True):
    """One candidate against its baseline: what was worse in it (`equal`: nothing), and what the gate made of it, and why.

    `tries` is how often it was run: again where the machine stood still for more than 50 ms, by a clock that knows no engine.
    """

    change: str
    seed: int
    result: str
    expected: str
    failed: tuple[str, ...]
    undecided: tuple[str, ...]
    tries: int = 1

    @property
    def is_right(self) -> bool:
        """Whether the gate said what it should."""
        return self.result == self.expected


class GateDrill(msgspec.Struct, frozen=True):
    """All of them."""

    runs: tuple[GateRun, ...]
    equal_passed: int
    equal: int
    regressions_failed: int
    regressions: int
    seconds: float
    passed: bool
    device: str
    floors: str
    schema: int = 1
