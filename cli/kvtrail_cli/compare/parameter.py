"""One setting of an engine by its name, for sweeps: `op_blocks`, `nvme.workers`, `step.budget_tokens`. Pure."""

from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any, Final

from kvtrail_engine.settings import EngineSettings

from kvtrail_cli.errors import InputInvalid

SHORT_NAMES: Final = {"prefetch_window": "prefetch.window"}


def parse_sweep(text: str) -> tuple[str, list[str]]:
    """`name=a,b,c` as a name and its values.

    Raises:
        InputInvalid: it has another form.
    """
    name, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not name.strip() or not found:
        message = f"--sweep {text}: write name=a,b,c, for instance op_blocks=4,8,16"
        raise InputInvalid(message)
    return name.strip(), found


def full_name(name: str) -> str:
    """What a short name stands for."""
    return SHORT_NAMES.get(name, name)


def with_parameter(settings: EngineSettings, name: str, value: str) -> EngineSettings:
    """The settings with one of them changed; `prefetch_window` stands for `prefetch.window`.

    Raises:
        InputInvalid: there is no setting of that name, or it does not take that value.
    """
    changed: EngineSettings = _changed(settings, full_name(name).split("."), name, value)
    return changed


def _changed(settings: Any, path: list[str], name: str, value: str) -> Any:
    """The same kind of settings, with what the path leads to replaced."""
    old = getattr(settings, path[0], None)
    if old is None or is_dataclass(old) != (len(path) > 1):
        message = f"--sweep: an engine has no setting {name}"
        raise InputInvalid(message)
    new = _parsed(old, name, value) if len(path) == 1 else _changed(old, path[1:], name, value)
    return replace(settings, **{path[0]: new})


def _parsed(old: Any, name: str, value: str) -> Any:
    """A value of the old one's kind."""
    try:
        if isinstance(old, bool):
            return {"true": True, "false": False}[value]
        if isinstance(old, int | float | Enum):
            return type(old)(value)
    except (KeyError, ValueError) as error:
        message = f"--sweep {name}: {value} is not what it takes, as {old} is"
        raise InputInvalid(message) from error
    message = f"--sweep {name}: only numbers, choices and switches can be swept"
    raise InputInvalid(message)
