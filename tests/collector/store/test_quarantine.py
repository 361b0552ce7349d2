"""Promises of the quarantine: each bad batch is a row, whatever is wrong with it; bytes are bounded; no good event is lost.

`KVTRAIL_LONG=1` sends ten thousand of them.
"""

import os
import random
from pathlib import Path

import httpx
import msgspec
import pyarrow as pa
import pytest
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import Quarantined, quarantine
from kvtrail_collector.testing import RunningCollector, memory_store, running_collector
from kvtrail_schema.batch import CONTENT_TYPE, Limits, decode_batch
from kvtrail_schema.errors import CodecError
from kvtrail_schema.header import encode_head, join_frame, peek_header, split_frame

from tests.collector.frames import frame, span
from tests.packages import ROOT

BAD = 10_000 if os.environ.get("KVTRAIL_LONG") == "1" else 150
GOOD_EVERY = 50
GOOD_ROWS = 16
LIMITS = Limits(frame_bytes=1 << 20, body_bytes=1 << 20)
GOLDEN = [path.read_bytes() for path in sorted((ROOT / "tests/schema/golden").glob("*.bin"))]


def flipped(draw: random.Random, good: bytes) -> bytes:
    """Some bits of a frame turned over."""
    bad = bytearray(good)
    for _ in range(draw.randint(1, 8)):
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
    return bytes(bad)


def cut(draw: random.Random, good: bytes) -> bytes:
    """A frame that ends too early, or goes on with junk."""
    return good[: draw.randrange(len(good))] if draw.random() < 0.5 else good + draw.randbytes(draw.randint(1, 64))


def forged(draw: random.Random, good: bytes) -> bytes:
    """A frame whose checksum is right and whose body is not."""
    header, body = split_frame(memoryview(good), LIMITS)
    bad = flipped(draw, bytes(body)) if len(body) else draw.randbytes(40)
    return join_frame(encode_head(header), bad, version=header.version)


def lying(draw: random.Random, good: bytes) -> bytes:
    """A frame whose checksum is right and whose header says other sizes or seqs."""
    header, body = split_frame(memoryview(good), LIMITS)
    name = draw.choice(["first_seq", "last_seq", "count", "body_bytes"])
    changed = msgspec.structs.replace(header, **{name: draw.choice([0, 1, 7, 2**20, 2**40, 2**63])})
    return join_frame(encode_head(changed), bytes(body), version=header.version)


def bomb(draw: random.Random, good: bytes) -> bytes:
    """A frame of a few hundred bytes that unpacks into megabytes, as it says or more than it says."""
    header = peek_header(good)
    size = draw.choice([LIMITS.body_bytes, 16 * LIMITS.body_bytes])
    body = pa.Codec("zstd").compress(bytes(size), asbytes=True)
    said = msgspec.structs.replace(header, body_bytes=draw.choice([size, 1_000, LIMITS.body_bytes]), count=1_000)
    return join_frame(encode_head(said), body, version=header.version)


def malformed(draw: random.Random) -> bytes:
    """A frame made from golden bytes that no reader takes."""
    while True:
        bad = draw.choice([flipped, cut, forged, lying, bomb])(draw, draw.choice(GOLDEN))
        try:
            decode_batch(bad, limits=LIMITS)
        except CodecError:
            return bad


def counts(collector: RunningCollector) -> tuple[int, int]:
    """Rows in quarantine, and good events that are stored."""
    with collector.store.read() as cursor:
        bad = cursor.execute("FROM quarantine SELECT count(*)").fetchall()[0][0]
    return bad, sum(account.stored.size for account in collector.store.accounts().values())


@pytest.mark.timeout(900)
def test_a_flood_of_bad_batches_harms_no_good_one(private_dir: Path) -> None:
    """Bits turned over, frames cut, lies with right checksums and bombs: a refusal and a row each; good batches go through."""
    draw, good = random.Random(20_260_101), 0
    own = Settings(
        store=str(private_dir / "events.duckdb"), port=0, body_bytes=LIMITS.frame_bytes, decoded_bytes=LIMITS.body_bytes
    )
    with (
        running_collector(own) as collector,
        httpx.Client(base_url=collector.url, headers={"content-type": CONTENT_TYPE}, trust_env=False, timeout=60) as client,
    ):
        for number in range(BAD):
            assert client.post("/v1/events", content=malformed(draw)).status_code == 400
            if number % GOOD_EVERY == 0:
                seqs = span(good + 1, good + GOOD_ROWS)
                good += GOOD_ROWS
                assert client.post("/v1/events", content=frame(seqs)).json() == {"stored": GOOD_ROWS, "duplicate": 0}

        assert (BAD, good) == counts(collector)
        assert client.get("/readyz").status_code == 200


def test_rows_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest rows are kept, and of them the newest bodies; what is let go is the oldest."""
    for name, value in {"KEPT_ROWS": 20, "KEPT_BODIES": 5, "_TRIM_EVERY": 10}.items():
        monkeypatch.setattr(quarantine, name, value)
    with memory_store() as store:
        for number in range(60):
            store.quarantine(Quarantined(number, "x", None, 3, b"abc")).result()
        with store.read() as cursor:
            rows = cursor.execute("SELECT received_wall_ns, octet_length(body) FROM quarantine ORDER BY ALL").fetchall()

    assert [number for number, _ in rows] == list(range(60 - len(rows), 60))
    assert 20 <= len(rows) < 30
    assert 5 <= len([size for _, size in rows if size]) < 15
