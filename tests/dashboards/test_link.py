"""Links: a view written is the view read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvtrail_dashboards.link import MOST_OBJECTIVE_MS, View, params_of, view_of

_TEXTS = st.text(min_size=1, max_size=20)
_WINDOWS = st.tuples(st.integers(-(2**63), 2**62), st.integers(1, 2**62 - 1)).map(lambda pair: (pair[0], pair[0] + pair[1]))


_OBJECTIVES = st.none() | st.integers(1, MOST_OBJECTIVE_MS)
_VIEWS = st.builds(
    View,
    engine=st.none() | _TEXTS,
    window=st.none() | _WINDOWS,
    request=st.none() | _TEXTS,
    rank=st.none() | st.integers(0, 2**16 - 1),
    tenant=st.none() | _TEXTS,
    model=st.none() | _TEXTS,
    last_s=st.none() | st.integers(0, 2**40),
    event=st.none() | _TEXTS,
    block=st.none() | _TEXTS,
    slo_ttft_ms=_OBJECTIVES,
    slo_tpot_ms=_OBJECTIVES,
    live=st.booleans(),
)


@given(_VIEWS)
def test_a_link_reproduces_its_view(view: View) -> None:
    """Whoever opens a link sees what its sender saw."""
    assert view == view_of(params_of(view))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        *(("5", "5"), ("9", "5"), ("x", "5"), ("", "5"), ("1.5", "5")),
        ("0", "9" * 26),
        ("-" + "9" * 26, "5"),
        ("0", "9" * 5_000),
    ],
)
def test_a_window_that_is_none_is_left_out(start: str, end: str) -> None:
    """A link that somebody mangled opens the page with the searched window instead of an error."""
    assert View(request="r-1") == view_of({"start_ns": start, "end_ns": end, "request": "r-1"})


def test_an_objective_longer_than_any_is_the_longest() -> None:
    """A page offers an hour at most; a link that says more opens it all the same."""
    assert View(slo_ttft_ms=3_600_000, slo_tpot_ms=None) == view_of({"slo_ttft_ms": "9999999999", "slo_tpot_ms": "0"})


def test_an_empty_link_searches_for_the_spike() -> None:
    """Without a window the view is that of the latest spike."""
    assert View() == view_of({})
    assert params_of(View()) == {}


def test_a_link_to_another_page_keeps_what_it_is_about() -> None:
    """Engine, rank, tenant, model and time go along; what was picked stays behind."""
    view = View(engine="a", rank=1, tenant="t", model="m", last_s=60, request="r", event="a/1/0/2", block="b")

    assert view_of(params_of(view.about())) == View(engine="a", rank=1, tenant="t", model="m", last_s=60)
