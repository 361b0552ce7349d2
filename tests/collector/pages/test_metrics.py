"""`/metrics`, read by the parsers of those who defined its forms."""

import re
from collections.abc import Iterator

import httpx
import pytest
from kvtrail_collector.metric_names import HELP
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from tests.collector.pages.story import story_told

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a collector that holds the story."""
    with story_told() as speaking:
        yield speaking


def families(client: httpx.Client, accept: str) -> dict[str, Metric]:
    """All metrics in one form, parsed."""
    answer = client.get("/metrics", headers={"accept": accept})
    parse = openmetrics if "openmetrics" in answer.headers["content-type"] else prometheus
    return {family.name: family for family in parse(answer.text)}


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
def test_both_forms_are_what_their_parsers_take(client: httpx.Client, accept: str) -> None:
    """Whoever scrapes gets the form that it asks for; every metric has a help text."""
    found = families(client, accept)

    assert accept.split(";", maxsplit=1)[0] in client.get("/metrics", headers={"accept": accept}).headers["content-type"]
    assert found["kvtrail_events_stored"].type == "counter"
    assert all(family.documentation for family in found.values())


def test_names_follow_the_rules_of_openmetrics() -> None:
    """Base units in the plural at the end, counters in `_total`, nothing else in it, and no colon."""
    for name in HELP:
        assert re.fullmatch(r"kvtrail_[a-z0-9_]+", name), name
        assert not re.search(r"_(ms|milliseconds|kib|mib|ns)(_|$)", name), name


def test_latencies_are_histograms_with_buckets_of_milliseconds(client: httpx.Client) -> None:
    """A request of 50 ms and one of 8 ms are told apart; counts only grow from bucket to bucket."""
    family = families(client, OPENMETRICS)["kvtrail_request_ttft_seconds"]
    counts = {one.labels["le"]: one.value for one in family.samples if one.name.endswith("_bucket")}
    total = {one.name.rsplit("_", 1)[1]: one.value for one in family.samples if "le" not in one.labels}

    assert (counts["0.005"], counts["0.01"], counts["0.025"], counts["0.05"], counts["+Inf"]) == (0, 1, 1, 2, 2)
    assert list(counts.values()) == sorted(counts.values())
    assert total["count"] == 2
    assert total["sum"] == pytest.approx(0.058)
