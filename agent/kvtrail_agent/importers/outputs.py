"""Where an import puts its rows: a transport, as frames, or a file of JSON Lines."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TextIO

from kvtrail_schema.errors import EventInvalid
from kvtrail_schema.header import BatchHeader
from kvtrail_schema.jsonl import write_line

from kvtrail_agent.errors import TransportUnavailable
from kvtrail_agent.importers.numbering import Numbered
from kvtrail_agent.transports import Transport

_ATTEMPTS: Final = 5
_FIRST_WAIT_S: Final = 0.2
_FLUSH_TIMEOUT_S: Final = 30.0


@dataclass(slots=True)
class TransportSender:
    """Sends frames one by one, each acknowledged before the next; a busy other side is asked again a few times.

    A frame that is refused ends the import with `BatchRejected`; one that nobody takes with `TransportUnavailable`.
    """

    transport: Transport
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, frame: bytes, header: BatchHeader) -> None:
        """Send one frame. Blocks until it is stored."""
        for attempt in range(_ATTEMPTS):
            try:
                self.transport.send(frame, header)
                self.transport.flush(_FLUSH_TIMEOUT_S)
            except TransportUnavailable:
                if attempt + 1 == _ATTEMPTS:
                    raise
                self.sleep(_FIRST_WAIT_S * 2**attempt)
            else:
                return


@dataclass(slots=True)
class JsonLinesOutput:
    """Writes rows as JSON Lines."""

    file: TextIO
    refused: list[str] = field(default_factory=list)
    """Rows that could not be written, a value of them being out of its field's range; none from a decoder of ours."""

    def add(self, rows: Iterable[Numbered]) -> None:
        """Write rows."""
        for row in rows:
            try:
                self.file.write(write_line(row.stream, row.event, row.extra) + "\n")
            except EventInvalid as error:
                self.refused.append(str(error))

    def close(self) -> None:
        """Bring what was written to the file."""
        self.file.flush()
