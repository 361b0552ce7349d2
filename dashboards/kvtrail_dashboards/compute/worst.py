"""The slowest requests as lines of a table."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kvtrail_dashboards.answers import Attribution, RequestRow, Requests

MAX_ROWS: Final = 50
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WorstLine:
    """One request. `request` names this one and no other, also where an engine started anew and counts from one again.

    `number` is text: a 64-bit id does not survive as a number in a browser.
    """

    request: str
    number: str
    name: str
    arrived: datetime
    ttft_ms: float | None
    state: str
    prompt_tokens: int | None
    output_tokens: int | None


def worst_lines(requests: Requests) -> tuple[WorstLine, ...]:
    """At most `MAX_ROWS` lines, in the order of the answer."""
    return tuple(_line(row) for row in requests.requests[:MAX_ROWS])


def place_of(lines: tuple[WorstLine, ...], request: str | None) -> int | None:
    """Where a request, as its link, number or own name, stands in the table."""
    return next((place for place, line in enumerate(lines) if request in {line.request, line.number, line.name}), None)


def exemplar_links(found: Attribution) -> tuple[tuple[str, str], ...]:
    """What people read of each exemplar, and how a link names it: by epoch and rank too, since every rank numbers its own."""
    requests = found.exemplar_requests or tuple(str(name) for name in found.exemplars)
    return tuple(
        (request.rpartition(":")[2] if str(name) == request else str(name), request)
        for name, request in zip(found.exemplars, requests, strict=False)
    )


def _line(row: RequestRow) -> WorstLine:
    """One request as a line."""
    return WorstLine(
        request=str(row.request) if row.epoch is None else f"{row.epoch}:{row.rank}:{row.request}",
        number=str(row.request),
        name=row.text or str(row.request),
        arrived=_EPOCH + timedelta(microseconds=row.arrived_wall_ns // 1_000),
        ttft_ms=None if row.ttft_ns is None else row.ttft_ns / 1e6,
        state="no first token" if row.censored else "answered",
        prompt_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
    )
