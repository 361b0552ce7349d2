"""The version of this distribution, as it stands in `agent_started`."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    """What the installed distribution says of itself; a bare source tree says nothing."""
    try:
        return version("kvtrail")
    except PackageNotFoundError:
        return "unknown"


VERSION: Final = _installed()
