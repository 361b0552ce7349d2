"""A folder that a recorder wrote (transport `file://`), read into a store in memory, so that verbs can ask it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kvtrail_cli.errors import InputInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kvtrail_collector.store import Store

_SEGMENTS: Final = frozenset({".segment", ".open"})
_LENGTH_BYTES: Final = 4


def is_segment_file(path: Path) -> bool:
    """Whether a path is one of a recorder's segments: named so, and no text. A segment begins with the length of a frame."""
    if not _is_named_so(path) or not path.is_file():
        return False
    with path.open("rb") as file:
        return b"\0" in file.read(_LENGTH_BYTES)


def _is_named_so(path: Path) -> bool:
    """Whether a path is named as a recorder names its segments."""
    return path.suffix in _SEGMENTS


def check_recording(folder: Path) -> None:
    """Whether a folder holds what a recorder wrote.

    Raises:
        InputInvalid: it does not, or a folder in it does.
    """
    if _has_segments(folder):
        return
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and _has_segments(path))
    if len(inside) == 1:
        message = f"{folder} holds no recording, but {inside[0]} does: give that"
    else:
        message = (
            f"{folder} holds no recording: give the folder of a recorder's transport, file:///…, in which .segment files lie"
        )
    raise InputInvalid(message)


def _has_segments(folder: Path) -> bool:
    """Whether segments lie in a folder."""
    return any(_is_named_so(path) for path in folder.iterdir())


@contextmanager
def stored_recording(folder: Path) -> Iterator[Store]:
    """A store in memory with all events of a recording. A second or two for a million.

    Raises:
        InputInvalid: a segment is damaged, or is none; or there is no event in them.
    """
    from kvtrail_agent.transports.file import read_segments  # noqa: PLC0415 - loads what only this needs
    from kvtrail_collector.errors import BatchInvalid  # noqa: PLC0415 - loads a database only where it is used
    from kvtrail_collector.steps.decode import decode  # noqa: PLC0415 - as above
    from kvtrail_collector.store import MEMORY, Store  # noqa: PLC0415 - as above
    from kvtrail_schema.errors import FrameTooLarge  # noqa: PLC0415 - as above
    from kvtrail_schema.header import DEFAULT_LIMITS  # noqa: PLC0415 - as above

    with Store.open(MEMORY) as store:
        try:
            for done in [store.submit(decode(frame, 0, DEFAULT_LIMITS)) for frame in read_segments(folder)]:
                done.result()
        except (BatchInvalid, FrameTooLarge) as error:
            what = error.trouble.what if isinstance(error, BatchInvalid) else str(error)
            message = f"{folder} holds a segment that cannot be read: {what}: record the run again"
            raise InputInvalid(message) from error
        if not store.accounts():
            message = f"{folder}: its segments hold no event: record the run again, and let it end"
            raise InputInvalid(message)
        yield store
