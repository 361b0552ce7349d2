"""What a question is about: engine, rank, tenant, model, and a stretch of time on the engine's monotonic clock."""

from dataclasses import dataclass
from typing import Final

from kvtrail_dashboards.link import View
from kvtrail_dashboards.page_answers import EngineRow

DEFAULT_LAST_S: Final = 900
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's subject; what is None is not narrowed."""

    engine: str | None = None
    rank: int | None = None
    tenant: str | None = None
    model: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None

    def params(self) -> dict[str, str | int | float | None]:
        """As the collector takes them."""
        return {
            "engine": self.engine,
            "rank": self.rank,
            "tenant": self.tenant,
            "model": self.model,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
        }


def asked_of(view: View, engine: EngineRow) -> Asked:
    """What a view asks about: its window, or the newest seconds that its engine is known for, by default 15 minutes."""
    start_ns, end_ns = view.window or _newest(view.last_s, engine)
    return Asked(engine.engine, view.rank, view.tenant, view.model, start_ns, end_ns)


def window_of(view: View, engine: EngineRow) -> tuple[int, int] | None:
    """The stretch of time that a view shows now, with both ends, so that a link can hold it; None where nothing is known."""
    start_ns, end_ns = view.window or _newest(view.last_s, engine)
    start_ns = engine.first_ns if start_ns is None else start_ns
    end_ns = engine.last_ns + 1 if end_ns is None and engine.last_ns is not None else end_ns
    return None if start_ns is None or end_ns is None or start_ns >= end_ns else (start_ns, end_ns)


def _newest(last_s: int | None, engine: EngineRow) -> tuple[int | None, int | None]:
    """The newest seconds, up to what is known now; open for all there is."""
    seconds = DEFAULT_LAST_S if last_s is None else last_s
    if not seconds or engine.last_ns is None:
        return None, None
    return max(engine.last_ns - seconds * _NS_PER_S, 0), engine.last_ns + 1
