"""What makes a command end with 2: it could not be done. One line on standard error says what, where and what to do.

```
CommandError
├── CollectorUnreachable   nobody answers at the address
├── CollectorRefused       the collector answered and did not do it
├── InputInvalid           a flag, a setting or a file is wrong
└── PartMissing            the verb needs a part of kvtrail that is not installed
```

Errors of the other packages say themselves what, where and what to do; `command_errors` is the one place that turns them
into a `CommandError`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from kvtrail_agent.errors import AgentError
from kvtrail_schema.errors import SchemaError


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


class PartMissing(CommandError):
    """The verb needs a part of kvtrail that is not installed."""


_EXTRA_OF: Final = {
    "duckdb": "collector",
    "fastapi": "collector",
    "kafka": "kafka",
    "redis": "engine",
    "sqlalchemy": "collector",
    "uvicorn": "collector",
    "streamlit": "dashboards",
    "torch": "engine",
    "xxhash": "engine",
}


@contextmanager
def command_errors() -> Iterator[None]:
    """Turn what other packages raise on purpose into a `CommandError`. Anything else is a fault of ours and shows its trace."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        message = f"this verb needs {error.name}: pip install 'kvtrail[{extra}]'"
        raise PartMissing(message) from error
    except (AgentError, SchemaError) as error:
        raise InputInvalid(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        message = f"{error.filename}: {error.strerror}: choose another place, or mend its permissions"
        raise InputInvalid(message) from error
    except Exception as error:
        if type(error).__module__.startswith(
            ("kvtrail_collector.errors", "kvtrail_engine.errors", "kvtrail_dashboards.errors")
        ):
            # Compared by module, since importing these packages here would load their databases and tensors.
            raise InputInvalid(str(error)) from error
        raise
