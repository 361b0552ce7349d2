"""What a doctor answers, of a collector or of a machine; loads no database."""

import msgspec


class EffectiveSetting(msgspec.Struct, frozen=True):
    """A setting in force, in its own type, and where it came from."""

    name: str
    value: bool | int | float | str | tuple[str, ...]
    source: str


class Check(msgspec.Struct, frozen=True):
    """One thing that has to hold; `fix` is empty while it does."""

    name: str
    ok: bool
    detail: str
    fix: str


class Diagnosis(msgspec.Struct, frozen=True):
    """All settings and all checks."""

    settings: tuple[EffectiveSetting, ...]
    checks: tuple[Check, ...]
    device: str | None = None
    schema: int = 1

    @property
    def ready(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)
