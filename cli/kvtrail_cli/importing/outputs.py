"""Where an import goes: a collector or another transport, a store, or a file of JSON Lines. Exactly one of them."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kvtrail_agent.importers.frames import Frames
from kvtrail_agent.importers.importing import Output
from kvtrail_agent.importers.outputs import JsonLinesOutput, TransportSender
from kvtrail_agent.transports import open_transport
from kvtrail_schema.clock import SystemClock

from kvtrail_cli.client import DEFAULT_URL
from kvtrail_cli.errors import InputInvalid

_MODE: Final = 0o600


class Place(NamedTuple):
    """What was said of where an import goes."""

    to: str | None
    db: Path | None
    out: Path | None
    token_file: Path | None
    kafka_options_file: Path | None

    @property
    def name(self) -> str:
        """The place for people."""
        return str(self.out or self.db or self.to or DEFAULT_URL)


@contextmanager
def opened_output(place: Place, anchor_wall_ns: int) -> Iterator[Output]:
    """The output at a place. `anchor_wall_ns` is the time of day of sources that tell none.

    Raises:
        InputInvalid: more than one place was named.
    """
    if sum(one is not None for one in (place.to, place.db, place.out)) > 1:
        raise InputInvalid("--to, --db and --out name different places: give one of them")
    if place.out is not None:
        with _new_file(place.out) as output:
            yield output
    elif place.db is not None:
        with _store(place.db, anchor_wall_ns) as output:
            yield output
    else:
        transport = open_transport(place.to or DEFAULT_URL, place.token_file, place.kafka_options_file)
        try:
            yield Frames(TransportSender(transport, time.sleep), anchor_wall_ns)
        finally:
            transport.close()


@contextmanager
def _new_file(path: Path) -> Iterator[Output]:
    """A file of JSON Lines that its owner alone may read; one that is there is replaced."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yield JsonLinesOutput(file)


@contextmanager
def _store(path: Path, anchor_wall_ns: int) -> Iterator[Output]:
    """A store that no collector has open; made where it is not there."""
    from kvtrail_collector.store import Incoming, Store  # noqa: PLC0415 - loads a database only where it is used
    from kvtrail_schema.batch import BatchHeader, decode_batch  # noqa: PLC0415 - as above

    clock = SystemClock()
    with Store.open(str(path)) as store:

        def send(frame: bytes, _header: BatchHeader) -> None:
            store.submit(Incoming(decode_batch(frame), clock.wall_ns())).result()

        yield Frames(send, anchor_wall_ns)
