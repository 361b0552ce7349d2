"""Promises of the questions over HTTP: the shapes that are published, errors that say what to do, no foreign names."""

from collections.abc import Iterator

import httpx
import pytest
from kvtrail_collector.metric_names import HELP
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.events import ManifestDeclared

from tests.collector.frames import dropped, frame, header, span


@pytest.fixture
def collector() -> Iterator[RunningCollector]:
    """A real collector with ten whole requests of one engine in it."""
    with running_collector() as running:
        body = frame(span(1, 80))
        httpx.post(f"{running.url}/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).raise_for_status()
        yield running


@pytest.fixture
def client(collector: RunningCollector) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(base_url=collector.url, trust_env=False) as speaking:
        yield speaking


def test_the_balance_has_its_published_shape(client: httpx.Client) -> None:
    """`/v1/loss` answers streams, `balanced`, and what every answer has."""
    body = frame(span(91, 92), drops=(dropped(81, 85),))
    client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE})
    stream = {
        "engine": "engine",
        "epoch": 7,
        "rank": 0,
        "produced": 92,
        "stored": 82,
        "dropped": [{"stage": "ring", "reason": "full", "count": 5}],
        "in_flight": 0,
        "unaccounted": 5,
        "gaps": [[86, 90]],
        "lost_before_stored": 0,
    }

    assert {"streams": [stream], "balanced": False, "device": None, "schema": 1} == client.get("/v1/loss").json()


def test_the_worst_requests_come_first(client: httpx.Client) -> None:
    """`/v1/requests` orders by time to first token and is cut at the limit."""
    answer = client.get("/v1/requests", params={"limit": 3}).json()

    assert [one["ttft_ns"] for one in answer["requests"]] == [6_000] * 3
    assert [one["text"] for one in answer["requests"]] == ["r-0", "r-1", "r-2"]
    first = answer["requests"][0]
    assert tuple(first[name] for name in ("engine", "arrived_ns", "censored", "prompt_tokens", "output_tokens")) == (
        "engine",
        1_000,
        False,
        100,
        7,
    )


def test_requests_can_be_cut_by_arrival(client: httpx.Client) -> None:
    """Bounds are half-open, and on the engine's own clock."""
    answer = client.get("/v1/requests", params={"start_ns": 9_000, "end_ns": 25_000, "order": "arrival"}).json()

    assert [one["request"] for one in answer["requests"]] == [1, 2]


def test_the_series_counts_every_request_once(client: httpx.Client) -> None:
    """Buckets by arrival, with quantiles in milliseconds and the wall time of their start."""
    answer = client.get("/v1/series", params={"bucket_ms": 10}).json()

    assert [one["requests"] for one in answer["series"]] == [10]
    assert [answer["series"][0][name] for name in ("p50_ms", "p95_ms", "p99_ms")] == [0.006] * 3
    assert client.get("/v1/series", params={"engine": "other"}).json()["series"] == []


def test_the_device_comes_from_the_manifest(client: httpx.Client) -> None:
    """Every answer names the device that the engine declared."""
    manifest = ManifestDeclared(seq=1, t_ns=5, text='{"device":"cpu-emulated","block_size":16}')
    body = encode_batch(header([1], engine="other"), table_of([manifest]))
    client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE})

    for path in ("/v1/loss", "/v1/requests", "/v1/series", "/readyz"):
        assert client.get(path).json()["device"] == "cpu-emulated"


def test_health_readiness_and_metrics(client: httpx.Client) -> None:
    """`/readyz` has the doctor's shape; `/metrics` has every metric that is named, and what was stored. Without a Kafka
    source there is nothing of Kafka in them.
    """
    ready = client.get("/readyz")
    metrics = client.get("/metrics").text

    assert client.get("/healthz").json() == {"ok": True}
    assert ready.status_code == 200
    assert {"name", "value", "source"} == ready.json()["settings"][0].keys()
    assert [check["name"] for check in ready.json()["checks"]] == ["store writer", "write queue", "disk"]
    assert [name for name in HELP if (f"# HELP {name} " in metrics) == name.startswith("kvtrail_kafka_")] == []
    assert "kvtrail_events_stored_total 80.0" in metrics


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/requests/nobody", 404),
        ("/v1/requests/99999999999999999999999", 404),
        ("/v1/series?bucket_ms=1", 422),
        ("/v1/requests?order=luck", 422),
        ("/v1/nothing", 404),
        ("/v1/events", 405),
    ],
)
def test_errors_say_what_where_and_what_to_do(client: httpx.Client, path: str, status: int) -> None:
    """Every error has one shape."""
    answer = client.get(path)

    assert status == answer.status_code
    assert {"what", "where", "do"} == answer.json()["error"].keys()


def test_a_foreign_name_is_not_answered(client: httpx.Client) -> None:
    """A call under a name that is not ours gets nothing, not even health."""
    assert [client.get(path, headers={"host": "evil.example"}).status_code for path in ("/healthz", "/v1/loss")] == [421, 421]
