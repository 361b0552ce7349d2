"""Several threads on one ring: seqs are unique, each thread's own order is kept, nothing is lost."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kvtrail_agent.ring_reader import Chunk
from kvtrail_schema.identity import RequestId
from kvtrail_schema.reasons import ErrorReason

from tests.agent.rings import TestRing, make_ring

THREADS = 4
EACH = 4_000


@pytest.fixture
def _often_switching() -> Iterator[None]:
    """Threads that change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def emit_many(ring: TestRing, thread: int, seqs: list[int]) -> None:
    """One thread's events: its number, and a count in the tokens; every tenth with a text."""
    for number in range(EACH):
        if number % 10 == 0:
            ring.writer.error(ErrorReason.IO, req=RequestId(thread), text=f"{thread}:{number}")
        else:
            seqs.append(ring.writer.request_finished(RequestId(thread), number))


def run_threads(ring: TestRing) -> tuple[list[list[int]], list[Chunk]]:
    """Let all threads emit while this one reads; the seqs that each was given, and what was read."""
    seqs: list[list[int]] = [[] for _ in range(THREADS)]
    threads = [
        threading.Thread(target=emit_many, args=(ring, n, seqs[n]), name=f"emitter-{n}", daemon=True) for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    chunks = []
    while any(thread.is_alive() for thread in threads):
        chunks.append(ring.take())
    chunks.append(ring.take())
    return seqs, chunks


@pytest.mark.usefixtures("_often_switching")
@pytest.mark.parametrize("slot_count", [1 << 15, 64], ids=["room for all", "mostly full"])
def test_threads_share_a_ring(slot_count: int, private_dir: Path) -> None:
    """Four threads at once: unique seqs, each thread's in its order, and every seq settled exactly once."""
    ring = make_ring(private_dir, slot_count=slot_count, text_bytes=1 << 16)
    seqs, chunks = run_threads(ring)
    ring.close()
    rows = [row for chunk in chunks for row in chunk.table.select(["seq", "req", "tokens", "text"]).to_pylist()]
    drops = [seq for chunk in chunks for drop in chunk.drops for seq in range(drop.first_seq, drop.last_seq + 1)]

    assert list(range(1, THREADS * EACH + 1)) == sorted([*(row["seq"] for row in rows), *drops])
    for thread in range(THREADS):
        own = [row["tokens"] for row in rows if row["req"] == thread and row["tokens"] is not None]
        texts = [row["text"] for row in rows if row["req"] == thread and row["text"] is not None]

        assert seqs[thread] == sorted(set(seqs[thread]))
        assert own == sorted(own)
        assert all(text.startswith(f"{thread}:") for text in texts)
    if slot_count > THREADS * EACH:
        assert drops == []
