"""Which code judged a run: figures of two versions must never be added up as if they were of one."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import kvtrail_collector
import kvtrail_schema

import kvtrail_cli.drill

_PACKAGES: Final = (kvtrail_schema, kvtrail_collector, kvtrail_cli.drill)
_LENGTH: Final = 16


def judged_by(made_from: Iterable[bytes] = ()) -> str:
    """A fingerprint of all that a judgement follows from: the code, and what a run was made from. 50 ms the first time."""
    found = hashlib.sha256(_code())
    for part in made_from:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()[:_LENGTH]


@cache
def _code() -> bytes:
    """A digest of the sources of the packages that judge."""
    found = hashlib.sha256()
    for package in _PACKAGES:
        home = Path(str(package.__file__)).parent
        for path in sorted(home.rglob("*")):
            if path.suffix in {".py", ".toml", ".json"}:
                found.update(f"{path.relative_to(home)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.digest()
