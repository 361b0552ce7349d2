"""What can go wrong between a page and the collector; each says what, where, and what to do.

```
DashboardError
├── SettingsUnusable          the collector's address or the token file cannot be used
└── CollectorError            a question got no usable answer
    ├── CollectorUnreachable  nobody answers at that address, or not in time
    ├── AccessRefused         the token is missing or is not the one for reading
    ├── NotKnown              the collector has no such request or path
    ├── QuestionRefused       the collector says that it cannot answer this
    └── AnswerUnreadable      an answer came that is too large, or not in the published shape
```
"""


class DashboardError(Exception):
    """The root of what this package raises. `do` is an instruction for the person who reads the page."""

    def __init__(self, what: str, *, where: str, do: str) -> None:
        super().__init__(f"{what} ({where}): {do}")
        self.what, self.where, self.do = what, where, do


class SettingsUnusable(DashboardError):
    """The collector's address or the token file cannot be used; raised before anything is sent."""


class CollectorError(DashboardError):
    """A question to the collector got no usable answer."""


class CollectorUnreachable(CollectorError):
    """Nobody answers at the address, or not in time."""


class AccessRefused(CollectorError):
    """The token is missing or is not the one for reading."""


class NotKnown(CollectorError):
    """The collector has no such thing."""


class QuestionRefused(CollectorError):
    """The collector answered with an error of its own words."""


class AnswerUnreadable(CollectorError):
    """An answer came that is too large or does not have the published shape."""
