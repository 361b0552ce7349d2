"""Excess and blame: bounded, ordered, and adding up to what was answered."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_collector.ledger_parts import Component
from kvtrail_dashboards.answers import Attribution, BlameRow, Delta
from kvtrail_dashboards.compute.excess import MAX_BARS, MAX_BLAME_ROWS, blame_lines, excess_bars
from kvtrail_dashboards.compute.families import Family, family_of, label_of

from tests.dashboards.answers import attribution


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_bars_add_up_to_all_components(excesses: list[float]) -> None:
    """However many components there are, no more bars are drawn than can be read, and none is left out of the sum."""
    bars = excess_bars(Attribution(components=tuple(Delta(f"c{place}", ms) for place, ms in enumerate(excesses))))

    assert len(bars) <= MAX_BARS + 1
    assert math.isclose(sum(excesses), sum(bar.excess_ms for bar in bars), abs_tol=1e-3)


def test_the_largest_excess_stands_first_with_its_interval() -> None:
    """Component and tier name a bar."""
    first = excess_bars(msgspec.convert(attribution(), Attribution))[0]

    assert (first.label, first.family) == ("storage_read · nvme", Family.READ)
    assert (first.low_ms, first.excess_ms, first.high_ms) == (164.0, 174.0, 184.0)


def test_blame_is_bounded_and_the_largest_first() -> None:
    """A queue with many tenants shows those that held up most."""
    lines = blame_lines([BlameRow("q", "demand", waited_ns=ms * 1_000_000) for ms in range(40)])

    assert len(lines) == MAX_BLAME_ROWS
    assert (lines[0].waited_ms, lines[0].tenant) == (39.0, "not named")


def test_a_queue_that_stood_idle_is_nobodys_work() -> None:
    """Nobody is blamed for a tier that served nobody."""
    (line,) = blame_lines([BlameRow("q", "idle", waited_ns=1)])

    assert line.tenant == ""


def test_every_component_of_the_ledger_has_a_family() -> None:
    """A component is `unattributed` only if it is that, or is not known to this version."""
    known = [component for component in Component if component is not Component.UNATTRIBUTED]

    assert [] == [component for component in known if family_of(component) is Family.UNATTRIBUTED]
    assert Family.UNATTRIBUTED is family_of("unattributed") is family_of("something_newer")


def test_a_copy_is_named_by_its_way() -> None:
    """The way names the tier already."""
    assert label_of("copy", "nvme", "nvme→gpu") == "copy · nvme→gpu"
    assert label_of("recompute_prefill", None, "evicted") == "recompute_prefill · evicted"
