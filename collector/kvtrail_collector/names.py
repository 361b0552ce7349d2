"""The operator's map: what hashed tenants and models are called. It lies with the collector; events never hold names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kvtrail_collector.errors import SettingsInvalid

_DO: Final = 'write lines like a202b546b2ef757e = "Search" under [tenants] or [models]'


class _Map(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The two tables of the file."""

    tenants: dict[str, str] = {}
    models: dict[str, str] = {}


def load_names(path: str) -> Mapping[str, str]:
    """Names by hashed value; none where no file is named. Reads one file, once, at start.

    Raises:
        SettingsInvalid: the file cannot be read, or holds something else than two tables of texts.
    """
    if not path:
        return {}
    try:
        tables = msgspec.convert(tomllib.loads(Path(path).read_text(encoding="utf-8")), _Map)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise SettingsInvalid(f"the map of names cannot be used: {error}", where=path, do=_DO) from error
    return {**tables.models, **tables.tenants}
