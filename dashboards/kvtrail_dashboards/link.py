"""What a link holds: engine, window and request, so that whoever opens it sees the same view."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

ENGINE = "engine"
START = "start_ns"
END = "end_ns"
REQUEST = "request"


@dataclass(frozen=True, slots=True)
class View:
    """One view of the page. Without a window the collector searches for the spike, so that view moves with the data."""

    engine: str | None = None
    window: tuple[int, int] | None = None
    request: str | None = None

    def with_window(self, start_ns: int, end_ns: int) -> "View":
        """The same view with the window held fast."""
        return replace(self, window=(start_ns, end_ns))


def view_of(params: Mapping[str, str]) -> View:
    """Read a link. A window that is none is left out, as a link may come from anywhere."""
    return View(
        engine=params.get(ENGINE) or None,
        window=_window(params.get(START, ""), params.get(END, "")),
        request=params.get(REQUEST) or None,
    )


def params_of(view: View) -> dict[str, str]:
    """Write a link."""
    params = {ENGINE: view.engine, REQUEST: view.request}
    if view.window is not None:
        params |= {START: str(view.window[0]), END: str(view.window[1])}
    return {name: value for name, value in params.items() if value is not None}


def _window(start: str, end: str) -> tuple[int, int] | None:
    """A window, if both ends are whole numbers of nanoseconds in order."""
    try:
        window = (int(start), int(end))
    except ValueError:
        return None
    return window if window[0] < window[1] else None
