"""A stretch of time as people say it, turned to an engine's monotonic clock."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from kvtrail_collector.engine_shapes import EngineRow, Engines

from kvtrail_cli.errors import InputInvalid

WINDOW_HELP: Final = "`last 15m` (s, m, h, d), or `FROM..TO`, each as ISO 8601 (UTC without an offset) or as monotonic ns."
_MOMENT_HELP: Final = "ISO 8601, or monotonic ns"
_LAST: Final = re.compile(r"last\s+(\d{1,9})\s*([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Stretch(NamedTuple):
    """[start, end) on the engine's monotonic clock, in nanoseconds; None is open."""

    start_ns: int | None
    end_ns: int | None


def engine_of(known: Engines, name: str | None) -> EngineRow:
    """The engine of this name, or the busiest.

    Raises:
        InputInvalid: there is none.
    """
    found = next((one for one in known.engines if name in {None, one.engine}), None)
    if found is None:
        names = ", ".join(one.engine for one in known.engines) or "none yet"
        raise InputInvalid(f"--engine {name}: not heard of; engines are: {names}")
    return found


def stretch_of(text: str | None, engine: EngineRow, flag: str = "--window") -> Stretch:
    """What `--window`, or another flag, says, as times of one engine; everything where it says nothing.

    Raises:
        InputInvalid: it is no stretch of time.
    """
    if text is None:
        return Stretch(None, None)
    last = _LAST.fullmatch(text.strip())
    if last is not None:
        newest = engine.last_ns or 0
        return Stretch(max(newest - int(last[1]) * _SECONDS[last[2]] * 1_000_000_000, 0), None)
    start, dots, end = text.partition("..")
    found = Stretch(_moment(flag, start, engine, WINDOW_HELP), _moment(flag, end, engine, WINDOW_HELP))
    if not dots or (found.start_ns is not None and found.end_ns is not None and found.start_ns >= found.end_ns):
        raise InputInvalid(f"{flag} {text}: no stretch of time; give {WINDOW_HELP}")
    return found


def moment_of(flag: str, text: str, engine: EngineRow) -> int:
    """What a flag says of one moment, as a time of one engine.

    Raises:
        InputInvalid: it is no moment.
    """
    found = _moment(flag, text, engine, _MOMENT_HELP)
    if found is None:
        raise InputInvalid(f"{flag}: {text!r} is no moment; give {_MOMENT_HELP}")
    return found


def _moment(flag: str, text: str, engine: EngineRow, wanted: str) -> int | None:
    """One end; open where nothing stands."""
    text = text.strip()
    if not text or (text.isascii() and text.isdecimal()):
        return int(text) if text else None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputInvalid(f"{flag}: {text!r} is no time; give {wanted}") from error
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(microseconds=1) * 1_000 - engine.wall_offset_ns
