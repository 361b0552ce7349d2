"""Promises of `POST /v1/events`: acknowledged after the commit, bounded, and what is no batch disturbs nothing."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import httpx
import pyarrow as pa
import pytest
from kvtrail_collector.settings import Settings
from kvtrail_collector.store import MEMORY
from kvtrail_collector.store.quarantine import KEPT_BYTES
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.arrow_schema import table_of
from kvtrail_schema.batch import CONTENT_TYPE, encode_batch

from tests.collector.frames import event_at, frame, header, span

AS_BATCH = {"content-type": CONTENT_TYPE}
LIMIT_BYTES = 200_000


@pytest.fixture
def collector() -> Iterator[RunningCollector]:
    """A real collector on a free port, with a small bound on bodies."""
    with running_collector(Settings(store=MEMORY, port=0, body_bytes=LIMIT_BYTES, body_timeout_s=1.0)) as running:
        yield running


@pytest.fixture
def client(collector: RunningCollector) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(base_url=collector.url, headers=AS_BATCH, trust_env=False) as speaking:
        yield speaking


def quarantined(collector: RunningCollector) -> list[tuple[str, str | None, int, int]]:
    """Reason, engine, size and kept size of everything in quarantine."""
    with collector.store.read() as cursor:
        return cursor.execute("SELECT reason, engine, size_bytes, octet_length(body) FROM quarantine").fetchall()


def count(collector: RunningCollector) -> int:
    """How many events are stored."""
    with collector.store.read() as cursor:
        row = cursor.execute("SELECT count(*) FROM events").fetchone()
    return int(row[0]) if row else 0


def test_an_acknowledged_batch_is_stored(collector: RunningCollector, client: httpx.Client) -> None:
    """The answer comes after the commit, and says how many rows were new."""
    first = client.post("/v1/events", content=frame(span(1, 50)))

    assert (first.status_code, first.json()) == (200, {"stored": 50, "duplicate": 0})
    assert count(collector) == 50
    assert client.post("/v1/events", content=frame(span(1, 60))).json() == {"stored": 10, "duplicate": 50}


def test_junk_is_quarantined_and_disturbs_nothing(collector: RunningCollector, client: httpx.Client) -> None:
    """What is no batch gets a 400 that says why, stays as evidence, and leaves the events alone."""
    client.post("/v1/events", content=frame(span(1, 5)))
    junk = client.post("/v1/events", content=b"x" * 100_000)

    assert junk.status_code == 400
    assert {"what", "where", "do"} == junk.json()["error"].keys()
    assert [row[2:] for row in quarantined(collector)] == [(100_000, KEPT_BYTES)]
    assert count(collector) == 5


def test_a_frame_that_changed_on_the_way_is_quarantined(collector: RunningCollector, client: httpx.Client) -> None:
    """One flipped bit anywhere is found by the checksum; nothing of the batch is stored."""
    good = frame(span(1, 20))
    for place in range(0, len(good), 41):
        bad = bytearray(good)
        bad[place] ^= 0x10

        assert client.post("/v1/events", content=bytes(bad)).status_code == 400
    assert count(collector) == 0
    assert len(range(0, len(good), 41)) == len(quarantined(collector))


def test_a_body_that_is_not_what_its_header_says_names_its_engine(collector: RunningCollector, client: httpx.Client) -> None:
    """Where the header can be trusted and the body cannot, the evidence says whose batch it was."""
    lying = encode_batch(header([5, 9]), table_of(event_at(seq) for seq in span(1, 2)))

    assert client.post("/v1/events", content=lying).status_code == 400
    assert [row[1] for row in quarantined(collector)] == ["engine"]
    assert count(collector) == 0


def test_an_announced_size_over_the_bound_is_refused_unread(collector: RunningCollector, client: httpx.Client) -> None:
    """413 by the header alone; the evidence has the size and none of the bytes."""
    answer = client.post("/v1/events", content=b"x" * (LIMIT_BYTES + 1))

    assert answer.status_code == 413
    assert [row[2:] for row in quarantined(collector)] == [(LIMIT_BYTES + 1, 0)]


def test_an_unannounced_size_is_bounded_while_it_streams(collector: RunningCollector, client: httpx.Client) -> None:
    """A body that never says how long it is, is cut off at the bound."""

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    try:
        status = client.post("/v1/events", content=endless()).status_code
    except httpx.HTTPError:  # the server may have hung up before all was sent
        status = 413

    assert status == 413
    assert len(quarantined(collector)) == 1
    assert count(collector) == 0


def test_a_body_that_does_not_say_it_is_a_batch_is_not_read(collector: RunningCollector, client: httpx.Client) -> None:
    """A browser cannot post here from a page, and packed bodies are not unpacked."""
    good = frame(span(1, 2))
    plain = client.post("/v1/events", content=good, headers={"content-type": "text/plain"})
    packed = client.post("/v1/events", content=good, headers={"content-encoding": "gzip"})

    assert [plain.status_code, packed.status_code] == [415, 415]
    assert (count(collector), quarantined(collector)) == (0, [])


def test_a_slow_body_is_given_up(collector: RunningCollector) -> None:
    """A sender that goes silent in the middle holds its place for a bounded time."""
    head = f"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: 1000\r\n\r\nKVTR"
    host, port = collector.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as silent:
        silent.sendall(head.encode())
        answer = silent.recv(4096)

    assert answer.startswith(b"HTTP/1.1 408")


def test_a_full_queue_says_come_again() -> None:
    """503 with Retry-After while as many bodies come in as may; nothing is lost by it."""
    with running_collector(Settings(store=MEMORY, port=0, uploads=1, body_timeout_s=20.0)) as running:
        host, port = running.url.removeprefix("http://").split(":")
        head = f"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: 9\r\n\r\n"
        with socket.create_connection((host, int(port))) as holding, httpx.Client(base_url=running.url) as client:
            holding.sendall(head.encode())
            answers = (client.post("/v1/events", content=frame(span(1, 2)), headers=AS_BATCH) for _ in range(1_000))
            refused = next(answer for answer in answers if answer.status_code != httpx.codes.OK)

            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_tokens_are_asked_for(private_dir: Path) -> None:
    """With a write token set, events without it are refused and are no evidence of anything."""
    token = private_dir / "token"
    token.write_text("write-token-of-tests")
    token.chmod(0o600)
    with running_collector(Settings(store=MEMORY, port=0, write_token_file=str(token))) as running:
        with httpx.Client(base_url=running.url, headers=AS_BATCH) as client:
            bare = client.post("/v1/events", content=frame(span(1, 2)))
            wrong = client.post("/v1/events", content=b"x", headers={"authorization": "Bearer wrong"})
            right = client.post(
                "/v1/events", content=frame(span(1, 2)), headers={"authorization": "Bearer write-token-of-tests"}
            )

        assert [bare.status_code, wrong.status_code, right.status_code] == [401, 403, 200]
        assert quarantined(running) == []


def test_what_this_version_does_not_know_is_kept(collector: RunningCollector, client: httpx.Client) -> None:
    """Columns and kinds of a newer sender are stored, unread, and harm nothing."""
    plain = table_of(event_at(seq) for seq in span(1, 2))
    newer = plain.set_column(2, "kind", pa.array([1, 999], pa.uint16())).append_column("shiny", pa.array(["new", None]))

    assert client.post("/v1/events", content=encode_batch(header(span(1, 2)), newer)).json() == {"stored": 2, "duplicate": 0}
    with collector.store.read() as cursor:
        rows = cursor.execute("SELECT kind, extra FROM events ORDER BY seq").fetchall()
    assert rows == [(1, '{"shiny":"new"}'), (999, None)]


def test_a_busy_writer_blocks_no_other_answer(collector: RunningCollector, client: httpx.Client) -> None:
    """While a commit takes its time, the event loop goes on: health is answered, and the batch waits for its turn."""
    release = threading.Event()

    def hold(_: duckdb.DuckDBPyConnection) -> None:
        release.wait(30)

    held = collector.store.run(hold)
    answers: list[int] = []
    sender = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"{collector.url}/v1/events", content=frame(span(1, 2)), headers=AS_BATCH, timeout=30.0).status_code
        ),
        name="test-sender",
    )
    sender.start()
    healths = [client.get("/healthz").status_code for _ in range(20)]

    assert (healths, answers, held.done()) == ([200] * 20, [], False)
    release.set()
    sender.join()
    assert answers == [200]
