"""What every transport promises. A new one gets its tests by one function and one line in `CARRIERS`."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from kvtrail_agent.errors import TransportUnavailable
from kvtrail_agent.testing import RecordingTransport
from kvtrail_agent.transports import Transport
from kvtrail_agent.transports.file import FileTransport, read_segments
from kvtrail_agent.transports.files import TransportFiles
from kvtrail_agent.transports.http import HttpTransport
from kvtrail_agent.transports.kafka import KafkaTimeouts, KafkaTransport
from kvtrail_agent.transports.kafka_address import read_address
from kvtrail_cli.demo.broker import LocalBroker

from tests.agent.frames import Frame, frame_of
from tests.agent.receivers import receiving
from tests.broker import new_topic, values_in

TIMEOUT_S = 5.0


@dataclass
class Carrier:
    """A transport, what arrived by it, and how to take away the other side and bring it back."""

    transport: Transport
    arrived: Callable[[], list[bytes]]
    take_away: Callable[[], None]
    bring_back: Callable[[], None]


@contextmanager
def by_http(_folder: Path, _request: pytest.FixtureRequest) -> Iterator[Carrier]:
    """To a real server on this host, which hangs when it is taken away."""
    with receiving() as receiver:
        client = httpx.Client(base_url=receiver.url, timeout=0.3, trust_env=False)
        yield Carrier(HttpTransport(client), lambda: receiver.frames, receiver.hold.clear, receiver.hold.set)


@contextmanager
def by_file(folder: Path, _request: pytest.FixtureRequest) -> Iterator[Carrier]:
    """Into a directory, which is taken away as a whole, with what is in it."""
    place = folder / "segments"
    place.mkdir()
    transport = FileTransport(place, name="a")
    yield Carrier(transport, lambda: list(read_segments(place)), lambda: shutil.rmtree(place), place.mkdir)


@contextmanager
def by_recording(_folder: Path, _request: pytest.FixtureRequest) -> Iterator[Carrier]:
    """Into memory: the double must keep the promises that the real ones keep."""
    transport = RecordingTransport()
    failure = TransportUnavailable("told to")
    yield Carrier(transport, lambda: transport.frames, lambda: transport._failures.append(failure), lambda: None)


@contextmanager
def by_kafka(_folder: Path, request: pytest.FixtureRequest) -> Iterator[Carrier]:
    """To a topic of a real broker, which hangs when it is taken away."""
    broker: LocalBroker = request.getfixturevalue("own_broker")
    topic = new_topic(broker.bootstrap)
    address = read_address(f"kafka://{broker.bootstrap}/{topic}", TransportFiles())
    transport = KafkaTransport(address, timeouts=KafkaTimeouts(connect_s=1.0, request_s=0.8, deliver_s=1.0))
    try:
        yield Carrier(transport, lambda: values_in(broker.bootstrap, topic), broker.pause, broker.resume)
    finally:
        broker.resume()


Maker = Callable[[Path, pytest.FixtureRequest], AbstractContextManager[Carrier]]

CARRIERS: dict[str, Maker] = {
    "http": by_http,
    "file": by_file,
    "kafka": by_kafka,
    "recording": by_recording,
}


@pytest.fixture(params=list(CARRIERS.values()), ids=list(CARRIERS))
def carrier(request: pytest.FixtureRequest, private_dir: Path) -> Iterator[Carrier]:
    """Each transport in turn, closed at the end."""
    make: Maker = request.param
    with make(private_dir, request) as made:
        yield made
        made.transport.close()


def send_all(carrier: Carrier, frames: list[Frame]) -> None:
    """Hand frames over and wait for their acknowledgement."""
    for frame, header in frames:
        carrier.transport.send(frame, header)
    carrier.transport.flush(TIMEOUT_S)


def test_flushed_frames_are_there(carrier: Carrier) -> None:
    """After send and flush the frames are on the other side, in order, byte for byte; heartbeats too."""
    frames = [frame_of(1), frame_of(4, 0), frame_of(4, 1), frame_of(5, 2_000)]
    send_all(carrier, frames)

    assert [frame for frame, _ in frames] == carrier.arrived()


def test_a_frame_may_come_again(carrier: Carrier) -> None:
    """Sending the same frame twice is no error: whoever stores it keeps each seq once."""
    send_all(carrier, [frame_of(1), frame_of(1)])

    assert [frame_of(1)[0]] * 2 == carrier.arrived()


def test_flush_without_frames_returns(carrier: Carrier) -> None:
    """Nothing under way is acknowledged at once."""
    carrier.transport.flush(TIMEOUT_S)

    assert carrier.arrived() == []


def test_absence_is_said_in_time(carrier: Carrier) -> None:
    """While the other side is away, send or flush raises `TransportUnavailable` within its timeout."""
    carrier.take_away()
    begin = time.monotonic()
    with pytest.raises(TransportUnavailable):
        send_all(carrier, [frame_of(1)])

    assert time.monotonic() - begin < TIMEOUT_S
    carrier.bring_back()


def test_the_same_frame_goes_through_later(carrier: Carrier) -> None:
    """What was not acknowledged can be sent again by the same transport once the other side is back."""
    carrier.take_away()
    with pytest.raises(TransportUnavailable):
        send_all(carrier, [frame_of(1)])
    carrier.bring_back()
    send_all(carrier, [frame_of(1), frame_of(4)])

    assert {frame_of(1)[0], frame_of(4)[0]} == set(carrier.arrived())
    assert frame_of(4)[0] == carrier.arrived()[-1]


def test_absence_after_a_good_frame_is_noticed(carrier: Carrier) -> None:
    """A connection or file that is open already hides nothing: a frame into the void is not acknowledged."""
    send_all(carrier, [frame_of(1)])
    carrier.take_away()
    with pytest.raises(TransportUnavailable):
        send_all(carrier, [frame_of(4)])
    carrier.bring_back()


def test_closing_twice_is_fine(carrier: Carrier) -> None:
    """Close may be called again, and with nothing sent, and after the other side went away."""
    carrier.transport.close()
    carrier.transport.close()


def test_closing_raises_nothing_when_the_other_side_is_gone(carrier: Carrier) -> None:
    """The shipper closes at its end; what was acknowledged stays so, whatever happened since."""
    send_all(carrier, [frame_of(1)])
    carrier.take_away()
    carrier.transport.close()
    carrier.bring_back()
