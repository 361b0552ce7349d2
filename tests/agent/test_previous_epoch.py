"""What `agent_started` says of the epoch before it, so that a story can be followed over a restart and a fork."""

from pathlib import Path

from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_agent.shipping import ShipperMode
from kvtrail_schema.events import AgentStarted
from kvtrail_schema.identity import Epoch, Rank, Stream

from tests.agent.deliveries import deliveries
from tests.agent.rings import make_ring
from tests.agent.test_processes import engine
from tests.agent.waiting import PATIENCE_S, wait_for


def started(segments: Path) -> dict[int, int | None]:
    """The epoch before each epoch."""
    found = {epoch: stream.events.get(1) for epoch, stream in deliveries(segments).items()}
    return {epoch: event.previous_epoch for epoch, event in found.items() if isinstance(event, AgentStarted)}


def test_a_forked_child_names_its_parents_epoch(private_dir: Path) -> None:
    """The parent comes after nobody, the child after the parent."""
    segments = private_dir / "segments"
    segments.mkdir()
    with engine("fork", private_dir, segments.as_uri()) as parent:
        parent.process.wait(PATIENCE_S)
        wait_for(lambda: parent.is_delivered, "delivery of both rings")
    found = started(segments)
    (first,) = [epoch for epoch, before in found.items() if before is None]

    assert sorted([None, first], key=str) == sorted(found.values(), key=str)


def test_a_restart_names_the_epoch_that_was_left_behind(private_dir: Path) -> None:
    """Of the same engine and rank alone, and the newest of several; a first start names none."""
    rings, segments = private_dir / "rings", private_dir / "segments"
    for folder in (rings, segments):
        folder.mkdir(0o700)
    for stream in (Stream("own", Epoch(5), Rank(0)), Stream("own", Epoch(3), Rank(0)), Stream("own", Epoch(9), Rank(1))):
        make_ring(rings, stream=stream).close()
    make_ring(rings, stream=Stream("other", Epoch(7), Rank(0))).close()
    settings = AgentSettings(engine="own", transport=segments.as_uri(), ring_dir=rings, close_timeout_ms=30_000)
    recorder = Recorder.start(settings, mode=ShipperMode.PROCESS)
    recorder.close()
    wait_for(lambda: not list(rings.glob("*.ring")), "delivery of the rings left behind")
    wait_for(lambda: all(shipping.has_ended for shipping in recorder._left_behind), "the end of their shippers")
    found = started(segments)

    assert {recorder.stream.epoch: 3} == found
