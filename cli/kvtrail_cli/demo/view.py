"""The demo's answer for people: the explanation, and beside it what was injected."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvtrail_cli.demo.shapes import Demo
from kvtrail_cli.tables import attribution_view

_NS_PER_S = 1_000_000_000


def demo_view(demo: Demo) -> RenderableType:
    """Load, books, explanation, and the comparison."""
    restored = ", ".join(f"{blocks:,} blocks from {tier}" for tier, blocks in demo.restored_blocks.items())
    events = demo.events
    books = "balanced" if demo.balanced else "NOT BALANCED"
    ttft = demo.ttft_ms
    return Group(
        Text(f"{demo.requests:,} requests, restored {restored}   ({demo.device}; {demo.floors})"),
        Text(f"TTFT ms: P50 {ttft.p50 or 0:,.1f}, P95 {ttft.p95 or 0:,.1f}, P99 {ttft.p99 or 0:,.1f}"),
        Text(
            f"books: {events.produced:,} produced = {events.stored:,} stored + {events.dropped:,} dropped"
            f" + {events.unaccounted:,} unaccounted: {books}"
        ),
        Text(),
        attribution_view(demo.attribution),
        Text(),
        _comparison(demo),
    )


def _comparison(demo: Demo) -> Table:
    """What was found beside what was injected; seconds from the start of the fault."""
    table = Table("", "what", "tier", "from", "to", box=None, header_style="dim")
    first = demo.verdicts[0] if demo.verdicts else None
    window = demo.attribution.window
    origin_ns = demo.injected.start_ns or (window.start_ns if window else 0)
    found = (window.start_ns, window.end_ns) if window else (None, None)
    table.add_row("found", first.code if first else "nothing", (first.tier if first else None) or "", *_span(origin_ns, *found))
    injected = demo.injected
    table.add_row("injected", injected.fault, injected.tier or "", *_span(origin_ns, injected.start_ns, injected.end_ns))
    return table


def _span(origin_ns: int, start_ns: int | None, end_ns: int | None) -> tuple[str, str]:
    """Two moments as seconds from an origin."""
    if start_ns is None or end_ns is None:
        return "", ""
    return f"{(start_ns - origin_ns) / _NS_PER_S:+.1f} s", f"{(end_ns - origin_ns) / _NS_PER_S:+.1f} s"
