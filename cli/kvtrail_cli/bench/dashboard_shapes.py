"""What `kvtrail bench dashboard` answers; loads neither a database nor a dashboard."""

import msgspec


class PageTime(msgspec.Struct, frozen=True):
    """How long one page takes from its link to its last element, with nothing cached: questions, answers, drawing."""

    page: str
    p50_s: float
    p95_s: float


class DashboardBench(msgspec.Struct, frozen=True):
    """Pages over a store of so many events; `loads` is how often each was opened. What the browser draws is not in it."""

    events: int
    loads: int
    pages: tuple[PageTime, ...]
    device: str | None = None
    schema: int = 1
