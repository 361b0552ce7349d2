"""What can go wrong in the collector, each with what, where and what to do.

```
CollectorError
├── SettingsInvalid      a setting that cannot be used; raised while settings are read
├── BindRefused          an address that would be open to strangers; raised before anything listens
├── BatchInvalid         a batch that cannot be stored; the sender's fault, carried to quarantine (4xx)
│   └── BodyTooLarge     its bytes are over the bound; nothing beyond the bound was read
├── MediaUnsupported     a body that does not say it is a batch; it was not read
├── BodyTimeout          a body that came too slowly; the sender may try again
├── Busy                 as many bodies are being received as may be: protocol, not failure; come again
├── SourceUnavailable    a source of batches cannot be read now; its thread tries again
├── AccessRefused        a call without the token for what it asks, or under a name that is not ours
├── StoreError           the store could not do it
│   ├── StoreUnavailable the file cannot be opened: it is missing, not ours, or another process holds it
│   ├── StoreNewer       the file was written by a newer kvtrail than this one
│   ├── StoreFull        the writer's queue is full: protocol, not failure; come again
│   ├── StoreClosed      the writer has ended
│   ├── PositionMoved    a batch does not follow what is stored of its source; the source reads again from there
│   ├── StoreBroken      a statement failed; nothing of its transaction was kept
│   └── StoreUnusable    the database gave up; the process has to start again
├── QuestionInvalid      a question that contradicts itself
├── NoEvents             a file in which not one line is an event
└── NotFound             a question about something that is not stored
```
"""

from http import HTTPStatus
from typing import Final

import msgspec


class Trouble(msgspec.Struct, frozen=True):
    """An error for people: what went wrong, where, and what to do about it."""

    what: str
    where: str
    do: str


class CollectorError(Exception):
    """The root of everything that this package raises on purpose."""

    def __init__(self, what: str, *, where: str, do: str) -> None:
        self.trouble: Final = Trouble(what=what, where=where, do=do)
        super().__init__(f"{where}: {what}; {do}")


class SettingsInvalid(CollectorError):
    """A setting cannot be used. Raised while settings are read, before anything starts."""


class BindRefused(CollectorError):
    """The address would be open to strangers. Raised before anything listens."""


class BatchInvalid(CollectorError):
    """A batch cannot be stored, and never will be. Raised by the steps before the store; the caller quarantines it."""


class BodyTooLarge(BatchInvalid):
    """A body has more bytes than the bound. What lies beyond the bound was not read."""


class MediaUnsupported(CollectorError):
    """A body does not say that it is a batch, or is packed in a way that we do not read. It was not read."""


class BodyTimeout(CollectorError):
    """A body came too slowly. Nothing of it was kept; the sender may try again."""


class Busy(CollectorError):
    """As many bodies are being received as may be. Protocol, not failure: the caller waits and comes again."""


class SourceUnavailable(CollectorError):
    """A source of batches cannot be read now. Heard by its own thread, which says so and tries again."""


class AccessRefused(CollectorError):
    """A call without the token for what it asks, or under a name that is not ours."""

    def __init__(self, what: str, *, where: str, do: str, status: HTTPStatus) -> None:
        super().__init__(what, where=where, do=do)
        self.status: Final = status


class StoreError(CollectorError):
    """The store could not do what it was asked."""


class StoreUnavailable(StoreError):
    """The file cannot be opened: it is no kvtrail store, or another process holds it."""


class StoreNewer(StoreError):
    """The file was written by a newer kvtrail; nothing in it was touched."""


class StoreFull(StoreError):
    """The writer's queue is full. Protocol, not failure: the caller waits and comes again."""


class StoreClosed(StoreError):
    """The writer has ended; nothing more can be stored through it."""


class PositionMoved(StoreError):
    """A batch does not follow what is stored of its source. Nothing of it was kept; its source reads again from there."""


class StoreBroken(StoreError):
    """A statement failed. Nothing of its transaction was kept."""


class StoreUnusable(StoreError):
    """The database itself gave up. What was acknowledged is safe; the process has to start again."""


class QuestionInvalid(CollectorError):
    """A question contradicts itself."""


class NoEvents(CollectorError):
    """Not one line of a file is an event: nothing can be said about it, least of all that it is well."""


class NotFound(CollectorError):
    """A question about something that is not stored."""
