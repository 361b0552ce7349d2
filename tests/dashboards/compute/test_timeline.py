"""The waterfall: end to end, adding up, hidden work apart."""

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_dashboards.answers import Part, Requests, Why
from kvtrail_dashboards.compute.event import EventLink
from kvtrail_dashboards.compute.timeline import timeline_of
from kvtrail_dashboards.compute.worst import MAX_ROWS, place_of, worst_lines

from tests.dashboards.answers import BIG_ID, requests, why


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_the_waterfall_has_no_gap_and_ends_at_the_first_token(lengths: list[int]) -> None:
    """Each part begins where the one before ends; the last ends at the time to first token."""
    timeline = timeline_of(Why("r", parts=tuple(Part("lookup", ns) for ns in lengths)))
    bars = timeline.waterfall

    assert all(before.end_ms == after.start_ms for before, after in pairwise(bars))
    assert timeline.total_ms == (bars[-1].end_ms if bars else 0)
    assert len(lengths) == len(bars)


def test_one_request_in_full() -> None:
    """Everything that the collector says of a request is there, in milliseconds."""
    timeline = timeline_of(msgspec.convert(why(), Why))

    assert [(bar.start_ms, bar.end_ms) for bar in timeline.waterfall] == [(0, 100), (100, 280), (280, 300)]
    assert [bar.ms for bar in timeline.hidden] == [6.0]
    assert [(str(BIG_ID), "nvme", 90.0)] == [(wait.op, wait.tier, wait.ms) for wait in timeline.waited_on]
    assert [(gap.step, gap.ms, gap.mostly) for gap in timeline.gaps] == [(9, 50.0, "decode_step · pure")]
    assert (timeline.recompute_estimate_ms, timeline.chain) == (34.0, (EventLink("loaded from nvme [slow]", "engine-a/7/0/3"),))


def test_ids_of_the_table_are_text() -> None:
    """A 64-bit id is not a number in a browser."""
    lines = worst_lines(msgspec.convert(requests(), Requests))

    assert (f"7:0:{BIG_ID}", str(BIG_ID)) == (lines[0].request, lines[0].number)


def test_two_requests_with_one_number_have_links_of_their_own() -> None:
    """An engine that started anew counts from one again: what was clicked on is what is shown."""
    rows = msgspec.convert(requests(2), Requests).requests
    anew = [msgspec.structs.replace(row, request=5, epoch=epoch) for epoch, row in enumerate(rows, 1)]

    assert ["1:0:5", "2:0:5"] == [line.request for line in worst_lines(Requests(tuple(anew)))]


def test_the_table_is_bounded() -> None:
    """A collector that sends more than was asked for fills no page."""
    assert len(worst_lines(msgspec.convert(requests(MAX_ROWS + 9), Requests))) == MAX_ROWS


def test_a_request_is_found_by_number_and_by_name() -> None:
    """A link may hold either."""
    lines = worst_lines(msgspec.convert(requests(), Requests))

    assert 1 == place_of(lines, "r-1") == place_of(lines, str(BIG_ID - 1))
    assert place_of(lines, "r-9") is None
    assert place_of(lines, None) is None
