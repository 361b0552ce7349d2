"""A real LMCache on a CPU: what its bus tells is recorded inside its process, what it sends by HTTP and Kafka outside of it."""

import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kvtrail_agent.attach.lmcache_http import LmcacheReceiver, LmcacheServer
from kvtrail_agent.attach.lmcache_kafka import LmcacheTopic
from kvtrail_agent.importers.format import Source
from kvtrail_agent.importers.hashes import block_of
from kvtrail_agent.importers.lmcache_batches import LmcacheBatches
from kvtrail_collector.testing import running_collector
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import BlockCreated, Evicted, TierDeclared

from tests.agent.waiting import wait_for
from tests.attach.live.engines import Recorded
from tests.broker import new_topic
from tests.engines.runs import run_script

KEY = bytes(range(32))
CHUNKS = 4
CHUNK_BYTES = 16 * 1024 * 2


class Observed(NamedTuple):
    """What LMCache counted, what a collector has of its bus, and what it sent by HTTP and to Kafka."""

    answer: dict[str, Any]
    ops: list[tuple[Any, ...]]
    counters: dict[str, float]
    texts: str
    sent: Recorded
    published: Recorded


@pytest.fixture(scope="module")
def observed(engines_python: Path, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """One run: chunks are stored, host memory is emptied, they are loaded again."""
    if subprocess.run([engines_python, "-c", "import lmcache"], check=False, capture_output=True).returncode:
        pytest.skip("real part missing: LMCache: `make test-engines` installs it")
    folder = tmp_path_factory.mktemp("lmcache")
    key = folder / "fleet.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    sent, stop = Recorded(folder), threading.Event()
    server = LmcacheServer("127.0.0.1", 0, LmcacheReceiver(LmcacheBatches(Source(KEY)), sent.rows))
    thread = threading.Thread(target=server.run, args=(stop,), name="test-lmcache", daemon=True)
    thread.start()
    topic = new_topic(bootstrap, partitions=3)
    with running_collector() as collector:
        agent = {"engine": "lm-a", "transport": collector.url, "ring_dir": f"{folder}/rings", "spool_dir": f"{folder}/spool"}
        spec = {"agent": agent, "key_file": str(key), "folder": f"{folder}/l2", "chunks": CHUNKS, "coordinator": server.url}
        spec["kafka"] = {"bootstrap_servers": bootstrap, "topic": topic}
        answer = run_script(engines_python, "lmcache_storage.py", spec, LMCACHE_TRACK_USAGE="false")
        with collector.store.read() as cursor:
            ops = cursor.execute("SELECT kind, src, dst, bytes, req FROM events WHERE op IS NOT NULL ORDER BY seq").fetchall()
            rows = cursor.execute('SELECT "text", "value" FROM events WHERE "value" IS NOT NULL').fetchall()
            texts = str(cursor.execute('SELECT "text", extra FROM events').fetchall())
    published = followed(bootstrap, topic, folder, moves(sent))
    stop.set()
    thread.join(30)
    return Observed(answer, ops, dict(rows), texts, sent, published)


def moves(recorded: Recorded) -> int:
    """How many blocks came and went."""
    return sum(isinstance(event, (BlockCreated, Evicted)) for event in recorded.transport.events)


def followed(bootstrap: str, topic: str, folder: Path, count: int) -> Recorded:
    """What a topic holds, read as `kvtrail agent poll` reads it, until so many blocks have come and gone."""
    own = folder / "topic"
    own.mkdir()
    recorded, stop = Recorded(own), threading.Event()
    reader = LmcacheTopic(bootstrap, topic, {}, from_start=True)
    decoder = LmcacheBatches(Source(KEY))
    thread = threading.Thread(target=reader.run, args=(decoder, recorded.rows, stop), name="test-lmcache-topic", daemon=True)
    thread.start()
    wait_for(lambda: moves(recorded) >= count, "the events of the topic", 60)
    stop.set()
    thread.join(20)
    return recorded


def test_nothing_is_left_out(observed: Observed) -> None:
    """All chunks came back, and no event of the bus was dropped, refused, or made us fail."""
    assert observed.answer["came"] is True
    assert (0, 0) == (observed.answer["errors"], observed.answer["dropped"])
    assert "quarantined" not in observed.texts


def test_stores_and_loads_of_l2(observed: Observed) -> None:
    """Each store and load of L2 is an op between host and nvme, with the bytes that LMCache says; its request is not told."""
    queued_out, written, queued_in, loaded = 28, 30, 33, 35
    kinds = [op[0] for op in observed.ops]
    own = observed.answer["own"]

    assert [own["l2.store.submitted"], own["l2.store.completed"]] == [kinds.count(queued_out), kinds.count(written)]
    assert [own["l2.load_task.submitted"], own["l2.load_task.completed"]] == [kinds.count(queued_in), kinds.count(loaded)]
    assert CHUNKS * CHUNK_BYTES == sum(op[3] for op in observed.ops if op[0] == queued_in)
    assert {None} == {op[4] for op in observed.ops}
    assert {(Tier.HOST, Tier.NVME), (Tier.NVME, Tier.HOST)} == {(op[1], op[2]) for op in observed.ops}


def test_what_has_no_event_of_ours_is_counted(observed: Observed) -> None:
    """Every event type that LMCache published is there: as an op, or as a counter of its name."""
    moves = {"l2.store.submitted", "l2.store.completed", "l2.load_task.submitted", "l2.load_task.completed"}

    assert set(observed.answer["own"]) - moves <= {name.removeprefix("lmcache.") for name in observed.counters}


@pytest.mark.parametrize("by", ["http", "kafka"])
def test_cache_events(observed: Observed, by: str) -> None:
    """Its own sinks send to us: each chunk came to the host and to nvme, and left the host once when that was emptied."""
    recorded = observed.sent if by == "http" else observed.published
    events = recorded.transport.events
    blocks = {block_of(KEY, bytes([number]) * 16) for number in range(CHUNKS)}
    made = [event for event in events if isinstance(event, BlockCreated)]
    gone = [event for event in events if isinstance(event, Evicted)]

    assert blocks == {event.block for event in made if event.tier is Tier.HOST}
    assert blocks == {event.block for event in made if event.tier is Tier.NVME}
    assert blocks <= {event.block for event in gone if event.tier is Tier.HOST}
    assert {CHUNK_BYTES} == {event.bytes for event in made}
    assert any(isinstance(event, TierDeclared) for event in events)
    assert (0, 0) == (recorded.rows.quarantined, recorded.rows.lost)


def test_nothing_in_clear(observed: Observed) -> None:
    """The tenant's name stands nowhere."""
    assert "tenant-secret" not in observed.texts
    assert "tenant-secret" not in repr(observed.sent.transport.events)
    assert "tenant-secret" not in repr(observed.published.transport.events)
