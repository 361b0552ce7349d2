"""Why a stored request was slow is told from a few of the events, and is what all of them say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kvtrail_collector.questions.requests import find_request
from kvtrail_collector.questions.rows import event_rows, streams
from kvtrail_collector.questions.why import why_stored
from kvtrail_collector.store import Store
from kvtrail_collector.testing import memory_store
from kvtrail_collector.why import Why, why
from kvtrail_schema.identity import RequestId
from kvtrail_schema.jsonl import read_file

from tests.collector.attribution.synthetic import Fault, Plan, simulate
from tests.collector.frames import events_batch


@pytest.fixture(scope="module", name="store")
def store_of_stories() -> Iterator[Store]:
    """A run of some seconds under one engine, and a story with tokens and causes under another."""
    run = simulate(Plan(seed=5, fault=Fault.NVME_QUEUE, start_s=4, end_s=8, run_s=12))
    story = [line.event for line in read_file(str(Path(__file__).parent / "story.jsonl"))]
    with memory_store() as store:
        store.submit(events_batch(run.numbered(), engine="run")).result()
        store.submit(events_batch(story, engine="story")).result()
        yield store


def told(store: Store, engine: str, name: str) -> tuple[Why | None, Why | None]:
    """What all events of an engine say of a request, and what is told."""
    with store.read() as cursor:
        found = find_request(cursor, name, engine)
        assert found is not None
        own = [stream for stream in streams(cursor) if stream.engine == engine]
        return why(event_rows(cursor, own), RequestId(found.request)), why_stored(cursor, found, own)


@pytest.mark.parametrize("number", range(40, 300, 50))
def test_a_request_of_a_run(store: Store, number: int) -> None:
    """Parts, what is hidden, and whom it stood behind."""
    everything, few = told(store, "run", f"r{number}")

    assert everything is not None
    assert everything == few


def test_a_request_with_tokens_and_causes(store: Store) -> None:
    """Gaps, and the chain of causes, which lie before the request."""
    everything, few = told(store, "story", "r")

    assert everything is not None
    assert len(everything.gaps) > 0
    assert len(everything.chain) > 1
    assert everything == few
