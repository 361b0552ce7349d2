"""What counts as the right answer to a fault: one file a fault, written before its first run.

An entry names a code and, where they are judged, tier and tenant; a field that it does not have is not judged. `right` is
the answer; `ties` are other true names for the same nanoseconds, each with its reason in the file.
"""

import tomllib
from importlib.resources import files
from typing import Final

import msgspec
from kvtrail_collector.attribution_shapes import Verdict

NEIGHBOUR: Final = "neighbour"
"""Stands for the tenant that the drill brings, whatever its name, or its hash, is."""
_FOLDER: Final = files("kvtrail_cli.drill") / "expected"


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer that counts."""

    code: str
    tier: str | None = None
    tenant: str | None = None

    def is_given_by(self, verdict: Verdict, neighbour: str | None) -> bool:
        """Whether a verdict says this. `neighbour` is the drill's tenant as the events name it."""
        wanted = neighbour if self.tenant == NEIGHBOUR else self.tenant
        is_tenant_right = self.tenant is None or (wanted is not None and verdict.tenant == wanted)
        return verdict.code == self.code and self.tier in {None, verdict.tier} and is_tenant_right


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What counts for one fault; nothing at all where no verdict is the right answer."""

    fault: str
    right: tuple[Answer, ...]
    ties: tuple[Answer, ...]

    def accepts(self, verdict: Verdict, neighbour: str | None = None) -> bool:
        """Whether a verdict is right, ties included."""
        return any(answer.is_given_by(verdict, neighbour) for answer in (*self.right, *self.ties))


def expected_of(fault: str) -> Expected:
    """The answer that is in the package. Reads a small file; the fault must be one that has one."""
    return _parsed((_FOLDER / f"{fault}.toml").read_bytes())


def known_faults() -> tuple[str, ...]:
    """Every fault that has an expectation, by name."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def _parsed(raw: bytes) -> Expected:
    """One file."""
    return msgspec.convert(tomllib.loads(raw.decode()), Expected)
