"""What makes a command end with 2: it could not be done. One line on standard error says what, where and what to do.

```
CommandError
├── CollectorUnreachable   nobody answers at the address
├── CollectorRefused       the collector answered and did not do it
└── InputInvalid           a flag, a setting or a file is wrong
```
"""

from enum import IntEnum


class Exit(IntEnum):
    """The exit statuses of every command (OUTPUTS)."""

    GOOD = 0
    BAD = 1
    IMPOSSIBLE = 2
    UNDECIDED = 3


class CommandError(Exception):
    """A command could not be done."""


class CollectorUnreachable(CommandError):
    """Nobody answers at the collector's address."""


class CollectorRefused(CommandError):
    """The collector answered, and did not do what it was asked."""


class InputInvalid(CommandError):
    """A flag, a setting or a file is wrong."""
