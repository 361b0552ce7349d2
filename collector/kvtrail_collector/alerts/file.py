"""The operator's file of alerts: `[[rule]]` tables over the shipped ones, and `[[target]]` tables for webhooks. TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kvtrail_collector.alerts.rules import Rule, problem_of
from kvtrail_collector.alerts.targets import Target, check_targets
from kvtrail_collector.errors import SettingsInvalid

DEFAULT_RULES: Final = Path(__file__).with_name("default_rules.toml")
_DO: Final = "see docs/alerts.md for the form of the file"


class AlertSettings(NamedTuple):
    """What is watched, and whom to tell."""

    rules: tuple[Rule, ...]
    targets: tuple[Target, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as it stands."""

    rule: tuple[Rule, ...] = ()
    target: tuple[Target, ...] = ()


def load_alerts(path: Path | None) -> AlertSettings:
    """The shipped rules, and over them, name by name, those of a file. Reads files; runs before anything starts.

    Raises:
        SettingsInvalid: the file cannot be read, or a rule or target in it cannot work.
    """
    shipped, own = _read(DEFAULT_RULES), _File() if path is None else _read(path)
    rules = {rule.name: rule for rule in (*shipped.rule, *own.rule)}
    return AlertSettings(tuple(rules.values()), own.target)


def _read(path: Path) -> _File:
    """One file, checked."""
    try:
        read = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File)
    except (OSError, ValueError) as error:
        raise SettingsInvalid(str(error), where=str(path), do=_DO) from error
    names = [rule.name for rule in read.rule]
    if len(set(names)) < len(names):
        raise SettingsInvalid("two rules have one name", where=str(path), do=_DO)
    for rule in read.rule:
        problem = problem_of(rule)
        if problem:
            raise SettingsInvalid(problem, where=f"{path}: rule {rule.name}", do=_DO)
    check_targets(read.target, str(path))
    return read
