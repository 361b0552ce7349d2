"""What a link holds, so that whoever opens it sees the same view: what it is about, which time, and what was picked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

ENGINE: Final = "engine"
RANK: Final = "rank"
TENANT: Final = "tenant"
MODEL: Final = "model"
LAST: Final = "last_s"
START: Final = "start_ns"
END: Final = "end_ns"
REQUEST: Final = "request"
EVENT: Final = "event"
BLOCK: Final = "block"
TTFT: Final = "slo_ttft_ms"
TPOT: Final = "slo_tpot_ms"
LIVE: Final = "live"
_MOST_DIGITS: Final = 20
MOST_OBJECTIVE_MS: Final = 3_600_000
"""No objective is longer: what a link says beyond it is read as this."""
_EARLIEST_NS: Final = -(2**63)
_LATEST_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class View:
    """One view of a page. Without a window the time moves with the data: the newest seconds, or the latest spike.

    `last_s` is how many of the newest seconds, 0 for all; `event` is `engine/epoch/rank/seq`; objectives are those of the
    page *Now*; `live` draws the page anew every few seconds.
    """

    engine: str | None = None
    window: tuple[int, int] | None = None
    request: str | None = None
    rank: int | None = None
    tenant: str | None = None
    model: str | None = None
    last_s: int | None = None
    event: str | None = None
    block: str | None = None
    slo_ttft_ms: int | None = None
    slo_tpot_ms: int | None = None
    live: bool = False

    def with_window(self, start_ns: int, end_ns: int) -> "View":
        """The same view with the window held fast."""
        return replace(self, window=(start_ns, end_ns), last_s=None)

    def about(self) -> "View":
        """The same engine, rank, tenant, model and time, with nothing picked: what a link to another page keeps."""
        return replace(self, request=None, event=None, block=None)


def view_of(params: Mapping[str, str]) -> View:
    """Read a link. What is none is left out, as a link may come from anywhere."""
    return View(
        engine=params.get(ENGINE) or None,
        window=_window(params.get(START, ""), params.get(END, "")),
        request=params.get(REQUEST) or None,
        rank=_count(params.get(RANK, "")),
        tenant=params.get(TENANT) or None,
        model=params.get(MODEL) or None,
        last_s=_count(params.get(LAST, "")),
        event=params.get(EVENT) or None,
        block=params.get(BLOCK) or None,
        slo_ttft_ms=_objective(params.get(TTFT, "")),
        slo_tpot_ms=_objective(params.get(TPOT, "")),
        live=params.get(LIVE) == "1",
    )


def params_of(view: View) -> dict[str, str]:
    """Write a link."""
    params: dict[str, str | int | None] = {
        ENGINE: view.engine,
        RANK: view.rank,
        TENANT: view.tenant,
        MODEL: view.model,
        LAST: view.last_s,
        REQUEST: view.request,
        EVENT: view.event,
        BLOCK: view.block,
        TTFT: view.slo_ttft_ms,
        TPOT: view.slo_tpot_ms,
        LIVE: 1 if view.live else None,
    }
    if view.window is not None:
        params |= {START: view.window[0], END: view.window[1]}
    return {name: str(value) for name, value in params.items() if value is not None}


def _window(start: str, end: str) -> tuple[int, int] | None:
    """A window, if both ends are whole numbers of nanoseconds in order, of 64 bits as clocks are."""
    try:
        window = (int(start), int(end))
    except ValueError:
        return None
    return window if _EARLIEST_NS <= window[0] < window[1] <= _LATEST_NS else None


def _objective(text: str) -> int | None:
    """An objective in ms, from one to the longest that a page offers; none where the link has none."""
    count = _count(text)
    return min(count, MOST_OBJECTIVE_MS) if count else None


def _count(text: str) -> int | None:
    """A whole number from 0 on, if it is one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS else None
