"""Promises of the computed answers: those of the pure computation, over what is stored, blind to what a drill says."""

from collections.abc import Iterator, Sequence

import httpx
import msgspec
import pytest
from kvtrail_collector.attribution import attribute
from kvtrail_collector.facts_rows import rows_of_table
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch
from kvtrail_schema.events import Event
from kvtrail_schema.kinds import Kind

from tests.collector.attribution.synthetic import Fault, Plan, Run, simulate, without_drills
from tests.collector.frames import header

ROWS_A_BATCH = 8_192


def send(collector: RunningCollector, events: Sequence[Event], engine: str = "demo") -> None:
    """Send a run's events in batches, as a shipper does."""
    with httpx.Client(base_url=collector.url, headers={"content-type": CONTENT_TYPE}, timeout=60.0) as client:
        for begin in range(0, len(events), ROWS_A_BATCH):
            part = events[begin : begin + ROWS_A_BATCH]
            body = encode_batch(header([event.seq for event in part], engine=engine), table_of(part))
            client.post("/v1/events", content=body).raise_for_status()


@pytest.fixture(scope="module")
def run() -> Run:
    """A run in which reads of nvme are slow for a while, and a drill says so in the stream."""
    return simulate(Plan(seed=1, fault=Fault.NVME_SLOW))


@pytest.fixture(scope="module")
def collector(run: Run) -> Iterator[RunningCollector]:
    """A collector that holds the run."""
    with running_collector() as running:
        send(running, run.numbered())
        yield running


@pytest.fixture
def client(collector: RunningCollector) -> Iterator[httpx.Client]:
    """A client of it, patient enough for computing."""
    with httpx.Client(base_url=collector.url, timeout=60.0, trust_env=False) as speaking:
        yield speaking


def test_attribution_is_that_of_the_events(client: httpx.Client, run: Run) -> None:
    """Over HTTP, after codec, store and selection of columns, the answer equals that of the events themselves."""
    expected = msgspec.json.decode(msgspec.json.encode(attribute(run.table())))

    answer = client.get("/v1/attribution").json()
    calibrated = {**expected, "clock_offset_ns": answer["clock_offset_ns"]}

    assert answer == calibrated
    assert expected["verdicts"][0]["code"] == "TIER_SLOW"


def test_a_window_can_be_given(client: httpx.Client, run: Run) -> None:
    """Bounds are taken as they are; one bound alone is no window."""
    start_ns, end_ns = run.fault_window_ns
    answer = client.get("/v1/attribution", params={"start_ns": start_ns, "end_ns": end_ns}).json()

    assert (answer["window"]["start_ns"], answer["window"]["end_ns"]) == (start_ns, end_ns)
    assert client.get("/v1/attribution", params={"start_ns": start_ns}).status_code == 422


def test_drills_are_not_read(collector: RunningCollector, run: Run) -> None:
    """Rows of drills reach the computation as bare seqs: neither their kind nor what they say, and no hole in their place."""
    with collector.store.read() as cursor:
        table = event_rows(cursor, streams(cursor))
    drills = {Kind.FAULT_INJECTED.value, Kind.FAULT_CLEARED.value}

    assert table.num_rows == len(run.events)
    assert drills.isdisjoint(table["kind"].to_pylist())
    assert rows_of_table(table).holes == ((),)


def test_the_answer_without_drills_is_the_same(client: httpx.Client, run: Run) -> None:
    """A run that never said that a fault was injected is explained alike, up to the seqs that moved."""
    with running_collector() as other:
        send(other, without_drills(run.numbered()))
        with httpx.Client(base_url=other.url, timeout=60.0) as asking:
            silent = asking.get("/v1/attribution").json()
    told = client.get("/v1/attribution").json()

    assert [one["code"] for one in told["verdicts"]] == [one["code"] for one in silent["verdicts"]]
    assert told["components"] == silent["components"]


def test_why_adds_up_to_the_latency(client: httpx.Client) -> None:
    """The worst request, asked for by number and by its engine's name, has parts that sum to its time to first token."""
    worst = client.get("/v1/requests", params={"limit": 1}).json()["requests"][0]
    by_number = client.get(f"/v1/requests/{worst['request']}").json()
    names = [worst["text"]] if worst["text"] else []

    assert by_number["ttft_ns"] == worst["ttft_ns"] == sum(part["ns"] for part in by_number["parts"])
    assert [client.get(f"/v1/requests/{name}").json() for name in names] == [by_number] * len(names)


def test_verdicts_come_with_what_they_stand_on(client: httpx.Client) -> None:
    """`/v1/verdicts` has the diagnosis with its coverage, and names the kinds that never came."""
    answer = client.get("/v1/verdicts").json()

    told = {"coverage", "window", "other_spikes", "verdicts", "missing", "unexplained", "notes", "device", "schema"}
    assert told == answer.keys()
    assert (answer["coverage"], answer["verdicts"][0]["code"]) == (1.0, "TIER_SLOW")
    assert "copy_waited" in [one["kind"] for one in answer["missing"]]


def test_answers_follow_the_stored_events(run: Run) -> None:
    """A cached answer is not given once more has been stored."""
    with running_collector() as running, httpx.Client(base_url=running.url, timeout=60.0) as asking:
        before = asking.get("/v1/attribution").json()
        send(running, run.numbered())

        assert before["why_not"] is not None
        assert asking.get("/v1/attribution").json()["verdicts"]
