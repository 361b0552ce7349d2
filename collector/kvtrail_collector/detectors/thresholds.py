"""Thresholds of verdicts from a TOML file: one table a code, one line a threshold."""

import tomllib
from pathlib import Path
from typing import Final

from kvtrail_collector.detectors.rules import RULES
from kvtrail_collector.errors import SettingsInvalid

_KNOWN: Final = {rule.code: {threshold.name for threshold in rule.thresholds} for rule in RULES}


def load_thresholds(path: str | Path) -> dict[str, dict[str, float]]:
    """Values by code and name; what the file leaves out keeps its default. An empty path is no file. Reads one file.

    Raises:
        SettingsInvalid: the file cannot be read, or names what no verdict has.
    """
    if not str(path):
        return {}
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsInvalid(str(error), where=str(path), do="give a readable TOML file of thresholds") from error
    return {code: _checked(code, values, str(path)) for code, values in tables.items()}


def _checked(code: str, values: object, where: str) -> dict[str, float]:
    """The thresholds of one code."""
    known = _KNOWN.get(code)
    if known is None or not isinstance(values, dict):
        raise SettingsInvalid(f"{code!r} is no verdict with thresholds", where=where, do="see docs/verdicts.md for all of them")
    found: dict[str, float] = {}
    for name, value in values.items():
        if name not in known or not isinstance(value, int | float) or isinstance(value, bool):
            do = f"{code} has {', '.join(sorted(known)) or 'none'}, each a number"
            raise SettingsInvalid(f"{code}.{name} = {value!r} is no threshold", where=where, do=do)
        found[name] = float(value)
    return found
