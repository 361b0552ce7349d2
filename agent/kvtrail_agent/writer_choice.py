"""Which writer of the ring this process uses: the one in C where it was built, else the one in Python."""

import os
from collections.abc import Mapping
from enum import Enum
from importlib.util import find_spec
from typing import Final

PURE_PYTHON: Final = "KVTRAIL_PURE_PYTHON"
"""Set to 1, this variable keeps the writer in Python."""


class WriterKind(Enum):
    """The two writers; they write the same bytes."""

    C = "c"
    PYTHON = "python"


def c_writer_is_built() -> bool:
    """Whether the extension is there; it is not loaded to find out."""
    return find_spec("kvtrail_agent._ring") is not None


def writer_in_use(environment: Mapping[str, str] = os.environ) -> WriterKind:
    """The writer that a recorder started now would use."""
    wants_c = environment.get(PURE_PYTHON, "") in {"", "0"}
    return WriterKind.C if wants_c and c_writer_is_built() else WriterKind.PYTHON
