"""What can be wrong with an event on its way.

```
SchemaError
├── CodecError            a batch that cannot be read; carried to the collector's quarantine
│   ├── NotABatch         the frame does not begin like one
│   ├── VersionUnknown    a newer version than this one reads
│   ├── FrameTooLarge     a length is over its bound, before or after decompression
│   ├── ChecksumMismatch  bytes changed on the way
│   └── BodyInvalid       the frame is whole, what it holds is not a batch of events
├── EventInvalid          an event that breaks the contract of its kind
├── OrderInvalid          what asks an engine to degrade cannot be understood
├── SecretInvalid         a file with secrets of webhooks cannot be used
├── OptionsInvalid        how to reach a Kafka cluster is said in a way that cannot be used
└── JsonLinesError        a line that is no event; names file, line and field
```
"""

from dataclasses import dataclass


class SchemaError(Exception):
    """The root of everything that this package raises on bad input."""


class CodecError(SchemaError):
    """A batch that cannot be read. The message says what, where, and what to do."""


class NotABatch(CodecError):
    """The frame does not begin with the mark of a kvtrail batch."""


class VersionUnknown(CodecError):
    """The frame says a version that this reader does not know; it is kept raw, not guessed."""


class FrameTooLarge(CodecError):
    """A length in the frame is over its bound; nothing of that length was read or allocated."""


class ChecksumMismatch(CodecError):
    """The bytes of the frame are not those that were sent."""


class BodyInvalid(CodecError):
    """The frame is whole, and still its body is not a batch of events."""


class EventInvalid(SchemaError):
    """An event that breaks the contract of its kind: a field missing, unknown, or out of its range."""


class OrderInvalid(SchemaError):
    """What asks an engine to degrade cannot be understood, or not be done by it; nothing was changed."""


class SecretInvalid(SchemaError):
    """A file with secrets of webhooks cannot be used; the message says why, without them."""


class OptionsInvalid(SchemaError):
    """How to reach a Kafka cluster is said in a way that cannot be used; the message says what to do."""


@dataclass
class JsonLinesError(SchemaError):
    """A line that is no event."""

    source: str
    line: int
    field: str
    problem: str

    def __str__(self) -> str:
        """Say where, which field, and what is wrong with it."""
        where = f"{self.source}:{self.line}"
        return f"{where}: field {self.field!r}: {self.problem}" if self.field else f"{where}: {self.problem}"
