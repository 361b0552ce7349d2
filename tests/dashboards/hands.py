"""What a person does with a page: click, wait, draw, refresh; and what the page costs meanwhile."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page, expect

SHOWN_MS: Final = 120_000 if os.environ.get("KVTRAIL_LONG") == "1" else 30_000
"""The long forms also run beside others, on a machine that has much to do."""
_STEPS: Final = 30


def refresh(page: Page, times: int) -> None:
    """Press the button, and wait each time until the page has come to rest."""
    for _ in range(times):
        expect(page.get_by_text("TIER_SLOW", exact=True)).to_be_visible(timeout=SHOWN_MS)
        page.get_by_role("button", name="Refresh").click()
        rest(page)


def rest(page: Page) -> None:
    """Wait until no script of the page runs."""
    page.wait_for_timeout(300)
    expect(page.locator("[data-testid='stApp'][data-test-script-state='running']")).to_have_count(0, timeout=SHOWN_MS)


def click(link: Locator) -> None:
    """One click on what may take a moment to appear."""
    expect(link).to_be_visible(timeout=SHOWN_MS)
    link.click()


def exemplar(page: Page) -> Locator:
    """The first request beside the words that announce them."""
    expect(page.get_by_text("Requests that show it best")).to_be_visible(timeout=SHOWN_MS)
    return page.get_by_role("link").and_(page.locator("a[href*='request=']")).first


def click_first_row(page: Page) -> None:
    """Tick the first row's box; the table is drawn on a canvas, so it is found by place."""
    box = page.get_by_test_id("stDataFrame").last.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 35 + 18)


def rss_mb(pid: int) -> float:
    """Memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS:"))


def sweep(page: Page, is_done: Callable[[], bool]) -> None:
    """Click on the chart from left to right until something comes of it: what is drawn on a canvas is found by place."""
    for step in range(1, _STEPS):
        x, y = _place(page, step / _STEPS, 0.75)
        page.mouse.click(x, y)
        page.wait_for_timeout(250)
        if is_done():
            return
    message = "no place of the chart does anything"
    raise AssertionError(message)


def type_choice(page: Page, name: str, text: str) -> None:
    """Choose from a list as somebody does who has no mouse: type a part of what is wanted, and Enter."""
    field = page.get_by_role("combobox", name=name)
    field.fill(text)
    page.wait_for_timeout(300)
    field.press("Enter")


def draw_over(page: Page, begin: float, end: float) -> None:
    """Drag over a part of the chart, from one share of its width to another."""
    for at, act in ((begin, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(*_place(page, at, 0.75), steps=8)
        act()


def _place(page: Page, across: float, down: float) -> tuple[float, float]:
    """A place on the chart of latency."""
    chart = page.get_by_test_id("stVegaLiteChart").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    return box["x"] + across * box["width"], box["y"] + down * box["height"] * 0.85


def heap_mb(page: Page) -> float:
    """Memory that a page's scripts hold in the browser, after what nobody needs was thrown away."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return float(found["JSHeapUsedSize"]) / (1 << 20)


def agreed(pages: list[Page]) -> list[str]:
    """What each page says, once all say the same: charts are drawn after the script has ended, each in its own time."""
    for _ in range(SHOWN_MS // 500):
        texts = [told(page) for page in pages]
        if len(set(texts)) == 1:
            break
        pages[0].wait_for_timeout(500)
    return texts


def told(page: Page) -> str:
    """All that a page says, but for how long ago the engine was heard of."""
    text = page.get_by_test_id("stMain").inner_text(timeout=SHOWN_MS)
    return re.sub(r"last heard of [^\n]*", "", text)
