"""The files beside an address: secrets never stand in addresses or flags, but in files that their owner alone may read."""

from pathlib import Path
from typing import NamedTuple


class TransportFiles(NamedTuple):
    """Where a transport finds what its address does not say; each takes what it needs."""

    token_file: Path | None = None
    kafka_options_file: Path | None = None
