"""What `kvtrail bench dashboard` answers; loads neither a database nor a dashboard."""

from typing import Final

import msgspec

PAGE_BUDGET_S: Final = 2.0
"""How long a page may take at P95."""


class PageTime(msgspec.Struct, frozen=True):
    """How long one page takes from its link to its last element, with nothing cached: questions, answers, drawing.

    `within_budget` says whether that is 2 s at most at P95.
    """

    page: str
    p50_s: float
    p95_s: float
    within_budget: bool


class DashboardBench(msgspec.Struct, frozen=True):
    """Pages over a store of so many events; `loads` is how often each was opened. What the browser draws is not in it."""

    events: int
    loads: int
    pages: tuple[PageTime, ...]
    device: str | None = None
    schema: int = 1
