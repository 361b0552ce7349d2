"""Tries to unbalance the books, from every side that somebody without the store's own hands has; each attempt is told.

A real collector over HTTP, real frames; what is asked afterwards is `/v1/loss`, and the rows themselves.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from kvtrail_collector.loss import FRESH_NS
from kvtrail_collector.loss_shapes import Loss, StreamLoss
from kvtrail_collector.settings import Settings
from kvtrail_collector.testing import running_collector
from kvtrail_schema.batch import CONTENT_TYPE, DropRange
from kvtrail_schema.enums import Stage
from kvtrail_schema.header import encode_head, peek_header
from kvtrail_schema.reasons import DropReason

from tests.collector.frames import dropped, frame, span

PREFIX = struct.Struct("<4sHII")


class ShiftedClock:
    """The machine's clock as a test wants it: it stands, and is moved."""

    def __init__(self) -> None:
        self.now_ns = 2_000_000_000_000_000_000

    def monotonic_ns(self) -> int:
        """As the wall clock, which nothing here compares it with."""
        return self.now_ns

    def wall_ns(self) -> int:
        """The time of the test."""
        return self.now_ns


class Victim:
    """A collector that is attacked, and what it says afterwards."""

    def __init__(self, client: httpx.Client, clock: ShiftedClock) -> None:
        self._client = client
        self._clock = clock

    def send(self, body: bytes) -> int:
        """Send a body; the status of the answer."""
        return self._client.post("/v1/events", content=body, headers={"content-type": CONTENT_TYPE}).status_code

    def later(self) -> None:
        """Let so much time pass that nothing can be in flight any more."""
        self._clock.now_ns += 2 * FRESH_NS

    def loss(self) -> Loss:
        """The balance that it publishes."""
        return msgspec.json.decode(self._client.get("/v1/loss").raise_for_status().content, type=Loss)

    def only(self) -> StreamLoss:
        """The balance of its one stream."""
        (stream,) = self.loss().streams
        return stream

    def metric(self, name: str) -> float:
        """The sum over a metric's labels."""
        lines = self._client.get("/metrics").raise_for_status().text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@pytest.fixture
def victim(private_dir: Path) -> Iterator[Victim]:
    """A collector on a file of its own."""
    clock = ShiftedClock()
    settings = Settings(store=str(private_dir / "events.duckdb"), port=0)
    with running_collector(settings, clock=clock) as running, httpx.Client(base_url=running.url) as client:
        yield Victim(client, clock)


def edited(body: bytes, field: str, value: int, *, mend_checksum: bool) -> bytes:
    """A frame with one field of its header replaced; a careful forger also computes length and checksum again."""
    magic, version, size, checksum = PREFIX.unpack_from(body)
    raw, packed = body[PREFIX.size : PREFIX.size + size], body[PREFIX.size + size :]
    head = encode_head(msgspec.structs.replace(peek_header(body), **{field: value}))
    assert head != raw
    if mend_checksum:
        checksum = zlib.crc32(packed, zlib.crc32(head, version))
    return PREFIX.pack(magic, version, len(head), checksum) + head + packed


def test_a_stolen_batch_is_a_gap(victim: Victim) -> None:
    """A batch taken away between two others is named by its seqs, at once."""
    victim.send(frame(span(1, 10)))
    victim.send(frame(span(21, 30)))

    assert ((11, 20),) == victim.only().gaps
    assert (10, False) == (victim.only().unaccounted, victim.loss().balanced)
    assert victim.metric("kvtrail_events_unaccounted{") == 10


def test_a_stolen_last_batch_is_told_once_the_stream_is_silent(victim: Victim) -> None:
    """The heartbeat said how much was produced: the end of a stream cannot be taken away unseen."""
    victim.send(frame(span(1, 10), produced=25))

    assert victim.only().in_flight == 15

    victim.later()

    assert (((11, 25),), 15) == (victim.only().gaps, victim.only().unaccounted)


@pytest.mark.parametrize("mend_checksum", [False, True], ids=["as it is", "with a new checksum"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 9), ("first_seq", 12), ("last_seq", 19), ("last_seq", 2000)],
    ids=["count", "first", "shorter", "longer"],
)
def test_an_edited_header_is_refused_and_its_events_are_missed(
    field: str, value: int, mend_checksum: bool, victim: Victim
) -> None:
    """Counts and ranges that do not fit the rows are noticed, with or without a forged checksum; nothing of it is stored."""
    victim.send(frame(span(1, 10)))
    status = victim.send(edited(frame(span(11, 20)), field, value, mend_checksum=mend_checksum))
    victim.send(frame(span(21, 22)))

    assert status == 400
    assert (12, ((11, 20),)) == (victim.only().stored, victim.only().gaps)
    assert victim.metric("kvtrail_batches_quarantined_total") == 1


def test_a_forged_produced_can_only_raise_an_alarm(victim: Victim) -> None:
    """Who raises `produced` makes a gap; who lowers it changes nothing, since the highest seq that was ever said counts."""
    victim.send(frame(span(1, 10), produced=10))
    victim.send(edited(frame(span(11, 20)), "produced", 1, mend_checksum=True))

    assert (20, 20, 0) == (victim.only().produced, victim.only().stored, victim.only().unaccounted)

    victim.send(edited(frame([], produced=20), "produced", 99, mend_checksum=True))
    victim.later()

    assert (99, 79) == (victim.only().produced, victim.only().unaccounted)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_cut_batch_is_refused_and_its_events_are_missed(share: float, victim: Victim) -> None:
    """Half a frame is none."""
    body = frame(span(11, 20))
    victim.send(frame(span(1, 10)))
    status = victim.send(body[: int(len(body) * share)])
    victim.send(frame(span(21, 30)))

    assert status == 400
    assert ((11, 20),) == victim.only().gaps


def test_an_old_batch_changes_nothing(victim: Victim) -> None:
    """A frame that is replayed, however often and late, stores no row, and hides no gap that came after it."""
    old = frame(span(1, 10))
    for body in (old, frame(span(21, 30)), old, old):
        victim.send(body)
    victim.later()
    victim.send(old)

    assert (20, ((11, 20),)) == (victim.only().stored, victim.only().gaps)
    assert victim.metric("kvtrail_events_duplicate_total") == 30


def test_a_batch_under_another_name_fills_no_gap(victim: Victim) -> None:
    """Events of another engine do not stand in for the missing ones."""
    victim.send(frame(span(1, 10)))
    victim.send(frame(span(21, 30)))
    victim.send(frame(span(11, 20), engine="impostor"))

    assert [("engine", 10), ("impostor", 10)] == [(one.engine, one.unaccounted) for one in victim.loss().streams]


def test_a_declared_drop_is_shown_as_one(victim: Victim) -> None:
    """Who declares the stolen batch dropped balances the books, and stands in them with stage and reason."""
    victim.send(frame(span(1, 10)))
    victim.send(frame(span(21, 30), drops=(dropped(11, 20, stage=Stage.TRANSPORT),)))

    assert [("transport", "full", 10)] == [(drop.stage, drop.reason, drop.count) for drop in victim.only().dropped]
    assert victim.metric('kvtrail_events_dropped{engine="engine"') == 10


def test_a_sender_cannot_speak_for_the_collector(victim: Victim) -> None:
    """`dropped(collector, retention)` is the collector's own word: from a sender it explains nothing and blocks nothing."""
    expiry = DropRange(Stage.COLLECTOR, DropReason.RETENTION, 11, 20, 10)
    victim.send(frame(span(1, 10), drops=(expiry,)))
    victim.send(frame(span(21, 30)))

    assert (((11, 20),), ()) == (victim.only().gaps, victim.only().dropped)
    assert victim.send(frame(span(11, 20))) == 200
    assert (30, 0) == (victim.only().stored, victim.only().unaccounted)


def test_what_a_newer_sender_declares_is_kept_under_its_number(victim: Victim) -> None:
    """A stage and a reason without a name still explain the drop, and are counted as unknown."""
    victim.send(frame(span(1, 10), drops=(DropRange(42, 251, 11, 20, 10),)))
    victim.send(frame(span(21, 30)))

    assert [("unknown-42", "unknown-251", 10)] == [(drop.stage, drop.reason, drop.count) for drop in victim.only().dropped]
    assert victim.metric("kvtrail_headers_unknown_total") == 1
