"""Traces in the public Mooncake form: one JSON object a line, prompts as ids of 512-token blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kvtrail_engine.errors import TraceError

HASH_TOKENS = 512


class TraceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """One line: when it came, how long its prompt and its answer are, and which blocks the prompt is made of."""

    timestamp: int | float
    """Milliseconds since the start of the trace."""
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read from a file, in the order of its lines."""

    requests: tuple[TraceRequest, ...]
    skipped_lines: tuple[int, ...]
    """Numbers of the wrong lines, where skipping was asked for."""


def read_trace(path: Path, *, limit: int | None = None, skip_bad_lines: bool = False) -> Trace:
    """Read the first `limit` requests of a trace. Blank lines are nothing.

    Raises:
        TraceError: a line is wrong and `skip_bad_lines` is off; or the file cannot be read (line 0).
    """
    requests: list[TraceRequest] = []
    skipped: list[int] = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if limit is not None and len(requests) >= limit:
                    break
                if line.strip():
                    _read_line(path, number, line, requests, skipped.append if skip_bad_lines else None)
    except OSError as exc:
        raise TraceError(path, 0, f"cannot be read: {exc.strerror}") from exc
    return Trace(tuple(requests), tuple(skipped))


def _read_line(path: Path, number: int, line: bytes, requests: list[TraceRequest], skip: Callable[[int], None] | None) -> None:
    """Add a line's request, or note its number, or raise."""
    try:
        request = msgspec.json.decode(line, type=TraceRequest)
        problem = _problem(request, requests[-1].timestamp if requests else 0)
    except (msgspec.DecodeError, msgspec.ValidationError) as exc:
        problem = str(exc)
    if problem is None:
        requests.append(request)
    elif skip is None:
        raise TraceError(path, number, problem)
    else:
        skip(number)


def _problem(request: TraceRequest, after_ms: float) -> str | None:
    """What is wrong with a line that is well formed; None if nothing is."""
    expected = -(-request.input_length // HASH_TOKENS)
    if request.input_length < 1:
        return f"input_length is {request.input_length}, it must be at least 1"
    if request.output_length < 1:
        return f"output_length is {request.output_length}, it must be at least 1"
    if len(request.hash_ids) != expected:
        return f"hash_ids has {len(request.hash_ids)} ids, but input_length {request.input_length} needs {expected}"
    if min(request.hash_ids) < 0:
        return f"hash_ids holds {min(request.hash_ids)}, ids are not negative"
    if request.timestamp < after_ms:
        return f"timestamp {request.timestamp} lies before the line above it ({after_ms})"
    return None
