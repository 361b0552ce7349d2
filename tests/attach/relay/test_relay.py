"""The relay against a real publisher over real sockets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kvtrail_agent.importers.hashes import block_of
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.relay.relay import Relay
from kvtrail_agent.relay.sockets import Sockets
from kvtrail_agent.testing import RecordingTransport, recorder_for_tests
from kvtrail_schema.arrow_schema import UnknownEvent
from kvtrail_schema.events import BlockCreated, Error, Event, Evicted, ManifestDeclared, TierCleared
from kvtrail_schema.identity import BlockId

from tests.agent.waiting import wait_for
from tests.attach.relay.publishers import Publisher, removed, stored

KEY = b"0123456789abcdef"


class Following:
    """A relay at work, and what it has sent."""

    def __init__(self, relay: Relay, transport: RecordingTransport) -> None:
        self.relay = relay
        self._transport = transport

    def wait(self, batches: int) -> None:
        """Until so many batches were recorded."""
        wait_for(lambda: self.relay.tally.batches >= batches, f"{batches} batches")

    def all_of(self, kind: type[Event]) -> list[Event | UnknownEvent]:
        """The events of a kind that were delivered."""
        return [event for event in self._transport.events if isinstance(event, kind)]

    @property
    def blocks(self) -> list[BlockId]:
        """The blocks that came, in order."""
        return [event.block for event in self._transport.events if isinstance(event, BlockCreated)]

    @property
    def epochs(self) -> list[int]:
        """The epochs, in the order of their first frame."""
        return list(dict.fromkeys(header.epoch for header in self._transport.headers))


@contextmanager
def relayed(publisher: Publisher, folder: Path, *, replay: bool = True, dialect: Dialect = Dialect.VLLM) -> Iterator[Following]:
    """A relay that follows a publisher; after the block all is delivered."""
    transport, stop, recorders = RecordingTransport(), threading.Event(), list[Recorder]()

    def start(_: int) -> Recorder:
        recorders.append(recorder_for_tests(transport, folder))
        return recorders[-1]

    sockets = Sockets(publisher.address, publisher.replay_address if replay else None, "", dialect)
    relay = Relay(sockets, start, key=KEY, dialect=dialect)
    thread = threading.Thread(target=relay.run, args=(stop,), name="test-relay")
    thread.start()
    publisher.wait_for_subscriber()
    try:
        yield Following(relay, transport)
    finally:
        stop.set()
        thread.join()
        wait_for(lambda: all(recorder.close() for recorder in recorders), "everything delivered")


def ids(*hashes: int) -> list[BlockId]:
    """The ids under which hashes are recorded."""
    return [block_of(KEY, one) for one in hashes]


def test_what_an_engine_publishes_is_recorded(private_dir: Path) -> None:
    """Stores and removals become events under keyed ids; what is left by fold is what the engine holds."""
    with Publisher() as publisher, relayed(publisher, private_dir) as following:
        publisher.publish(stored(1, 2, 3))
        publisher.publish(removed(2), stored(4, parent=3))
        following.wait(2)

    assert ids(1, 2, 3, 4) == following.blocks
    assert ids(2) == [event.block for event in following.all_of(Evicted) if isinstance(event, Evicted)]
    assert set(ids(1, 3, 4)) == following.relay.resident()
    assert 1 == len(following.all_of(ManifestDeclared))


@pytest.mark.parametrize("with_topic", [True, False])
def test_what_got_lost_is_replayed(private_dir: Path, with_topic: bool) -> None:
    """Batches that the socket dropped are asked for, and stand in their place; with replies of either form."""
    with Publisher(with_topic=with_topic) as publisher, relayed(publisher, private_dir) as following:
        publisher.publish(stored(1))
        publisher.publish(stored(2), lost=True)
        publisher.publish(stored(3), lost=True)
        publisher.publish(stored(4))
        following.wait(4)

    assert ids(1, 2, 3, 4) == following.blocks
    assert 0 == following.relay.tally.lost_batches


def test_what_stays_lost_is_told(private_dir: Path) -> None:
    """A gap that no replay fills is a row of the stream, with its numbers, and goes on."""
    with Publisher() as publisher, relayed(publisher, private_dir, replay=False) as following:
        publisher.publish(stored(1))
        publisher.publish(stored(2), lost=True)
        publisher.publish(stored(3))
        following.wait(2)
    errors = [event for event in following.all_of(Error) if isinstance(event, Error)]

    assert ids(1, 3) == following.blocks
    assert 1 == following.relay.tally.lost_batches
    assert ["batches 1 to 1 of the engine never came; what they said of blocks is not known"] == [one.text for one in errors]


def test_a_relay_that_comes_late_gets_what_is_kept(private_dir: Path) -> None:
    """An engine that has run for a while is known from the oldest batch that it keeps."""
    with Publisher() as publisher:
        publisher.publish(stored(1), kept=False)
        publisher.publish(stored(2))
        publisher.publish(stored(3))
        with relayed(publisher, private_dir) as following:
            publisher.publish(stored(4))
            following.wait(3)

    assert ids(2, 3, 4) == following.blocks
    assert 0 == following.relay.tally.lost_batches


def test_an_engine_that_began_anew_has_an_epoch_of_its_own(private_dir: Path) -> None:
    """After a restart on the same ports nothing of before is resident, and the stream is another one."""
    with Publisher() as first, relayed(first, private_dir) as following:
        first.publish(stored(1))
        first.publish(stored(2))
        following.wait(2)
        first.close()
        with Publisher(first.port, first.replay_port) as second:
            second.wait_for_subscriber()
            second.publish(stored(7))
            following.wait(3)

    assert 1 == following.relay.tally.restarts
    assert set(ids(7)) == following.relay.resident()
    assert 2 == len(following.epochs)


def test_what_nobody_knows_is_kept(private_dir: Path) -> None:
    """A new field and a new event of a later version stand in the stream, without what they could betray."""
    with Publisher() as publisher, relayed(publisher, private_dir) as following:
        publisher.publish(stored(1, novelty="secret"), {"type": "BlockDreamt", "why": "secret"})
        following.wait(1)
    texts = [str(event.text) for event in following.all_of(Error) if isinstance(event, Error)]

    assert ids(1) == following.blocks
    assert any("novelty" in text for text in texts)
    assert any("BlockDreamt" in text for text in texts)
    assert not any("secret" in text for text in texts)


def test_what_comes_after_a_clear_in_one_batch_stays(private_dir: Path) -> None:
    """VLLM tells a reset together with the blocks of the next step, at one time: here they have an order in time."""
    with Publisher() as publisher, relayed(publisher, private_dir) as following:
        publisher.publish(stored(1))
        publisher.publish({"type": "AllBlocksCleared"}, stored(2))
        following.wait(2)
    before, after = (event for event in following.all_of(BlockCreated))
    cleared = following.all_of(TierCleared)[0]

    assert before.t_ns < cleared.t_ns < after.t_ns
    assert set(ids(2)) == following.relay.resident()


def test_garbage_is_counted_and_stops_nothing(private_dir: Path) -> None:
    """Messages that are none, and payloads that are none, cost nothing but themselves."""
    with Publisher() as publisher, relayed(publisher, private_dir) as following:
        publisher.send_raw([b"kv", b"hello"])
        publisher.send_raw([b"kv", (0).to_bytes(8, "big"), b"\xc1"])
        publisher.publish(stored(1), lost=True)
        publisher.publish(stored(2))
        following.wait(2)

    assert 1 == following.relay.tally.unreadable
    assert 1 == following.relay.tally.quarantined
    assert ids(2) == following.blocks[-1:]


def test_ranks_have_streams_of_their_own(private_dir: Path) -> None:
    """Each data-parallel rank that speaks on a socket is recorded by itself."""
    with Publisher() as publisher, relayed(publisher, private_dir) as following:
        publisher.publish(stored(1), rank=0)
        publisher.publish(stored(2), rank=3)
        following.wait(2)

    assert 2 == len(following.epochs)
    assert ids(1, 2) == sorted(following.blocks, key=ids(1, 2).index)
