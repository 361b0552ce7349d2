"""Wall time for people: joins the engine's monotonic clock to UTC for display, never for measuring."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from kvtrail_dashboards.answers import Series, Window

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WallTime:
    """What to add to a monotonic time to get nanoseconds since 1970; from the newest bucket."""

    offset_ns: int

    def at(self, monotonic_ns: int) -> datetime:
        """The UTC time of a monotonic time, to the microsecond."""
        return _EPOCH + timedelta(microseconds=(monotonic_ns + self.offset_ns) // 1_000)

    def monotonic_ns(self, at: datetime) -> int:
        """Back again."""
        return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1_000 - self.offset_ns

    def span(self, window: Window) -> str:
        """A window in words."""
        start, end = self.at(window.start_ns), self.at(window.end_ns)
        day = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
        seconds = (window.end_ns - window.start_ns) / 1e9
        return f"{start:%Y-%m-%d %H:%M:%S} to {day}{end:%H:%M:%S} UTC ({seconds:.1f} s)"


def moment(wall_ns: int) -> datetime:
    """A wall time as Python has it, to the microsecond."""
    return _EPOCH + timedelta(microseconds=wall_ns // 1_000)


def wall_time(series: Series) -> WallTime:
    """The calibration that a series carries; without any bucket times are counted from 1970."""
    newest = max(series.series, key=lambda row: row.start_ns, default=None)
    return WallTime(newest.wall_ns - newest.start_ns if newest else 0)
