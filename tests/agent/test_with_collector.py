"""Agent and collector, both real: what the recorder took is in the store, once, and the books balance."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from kvtrail_agent.errors import BatchRejected
from kvtrail_agent.testing import recorder_for_tests
from kvtrail_agent.transports import Transport, open_transport
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.identity import StepId
from kvtrail_schema.reasons import ErrorReason

from tests.agent.frames import frame_of


@pytest.fixture(scope="module")
def collector() -> Iterator[RunningCollector]:
    """A real collector on loopback."""
    with running_collector() as running:
        yield running


@pytest.fixture
def transport(collector: RunningCollector) -> Iterator[Transport]:
    """HTTP to it."""
    opened = open_transport(collector.url)
    yield opened
    opened.close()


def stream_at(collector: RunningCollector, engine: str) -> dict[str, Any]:
    """What the collector's books say of an engine's one stream."""
    streams = httpx.get(f"{collector.url}/v1/loss", timeout=30, trust_env=False).json()["streams"]
    (found,) = [stream for stream in streams if stream["engine"] == engine]
    own: dict[str, Any] = found
    return own


def test_a_recorders_events_are_stored(collector: RunningCollector, transport: Transport, private_dir: Path) -> None:
    """Every event of a recorder, refused ones among them, is stored or explained when close has said yes."""
    recorder = recorder_for_tests(transport, private_dir, engine="whole")
    for number in range(2000):
        recorder.step_started(StepId(number if number % 100 else -1))
        recorder.error(ErrorReason.IO, text=f"text {number}")
    delivered = recorder.close(60)
    books = stream_at(collector, "whole")

    assert delivered
    assert recorder.produced == books["produced"]
    assert recorder.produced - 20 == books["stored"]
    assert [("encode", "encode_error", 20)] == [(drop["stage"], drop["reason"], drop["count"]) for drop in books["dropped"]]
    assert books["unaccounted"] == 0


def test_a_frame_that_comes_again_is_stored_once(collector: RunningCollector, transport: Transport) -> None:
    """What a killed shipper had sent and not released comes again, and changes nothing."""
    for first in (1, 1, 3, 1):
        transport.send(*frame_of(first))
    books = stream_at(collector, "test-engine")

    assert books["stored"] == 5


def test_a_damaged_frame_is_refused_for_good(transport: Transport) -> None:
    """The collector's answer to what is no batch reaches the shipper as "never"."""
    frame, header = frame_of(1)
    with pytest.raises(BatchRejected):
        transport.send(frame[:-1] + bytes([frame[-1] ^ 1]), header)
