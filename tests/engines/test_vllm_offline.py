"""vLLM as a library on a CPU: our connector around ExampleConnector, and the relay beside it, in one run."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from kvtrail_agent.importers.hashes import block_of
from kvtrail_agent.importers.vllm_wire import Dialect
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.relay.relay import Relay
from kvtrail_agent.relay.sockets import Sockets
from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.testing import RunningCollector, running_collector

from tests.cli.test_verbs import kvtrail
from tests.engines.runs import connector, prompts, run_script

KEY = bytes(range(32))
PROMPTS = 8
ROUNDS = 3
BLOCKS = 64


class Observed(NamedTuple):
    """What a run gave, what the relay holds, and where both were recorded."""

    answer: dict[str, Any]
    relay: Relay
    collector: RunningCollector


@pytest.fixture(scope="module")
def observed(engines_python: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """One run of three rounds; the GPU holds less than the prompts need, and is emptied after the second."""
    folder = tmp_path_factory.mktemp("offline")
    key = folder / "fleet.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    with ExitStack() as stack:
        short = stack.enter_context(tempfile.TemporaryDirectory(prefix="kvt-"))  # paths of sockets are short
        live, kept = f"ipc://{short}/live", f"ipc://{short}/kept"
        collector = stack.enter_context(running_collector())
        relay = stack.enter_context(relaying(live, kept, collector.url, folder))
        told = {"engine": "inside", "transport": collector.url, "key_file": str(key)}
        spec = {
            "model": str(model),
            "connector": connector(folder / "store", told),
            "events": {"endpoint": live, "replay_endpoint": kept},
            "prompts": prompts(PROMPTS),
            "rounds": ROUNDS,
            "reset_after": [1],
            "blocks": BLOCKS,
            "fields": {"cache_salt": "tenant-a"},
        }
        answer = run_script(engines_python, "offline.py", spec, XDG_STATE_HOME=str(folder))
        yield Observed(answer, relay.finish(), collector)


class Relaying(ExitStack):
    """A relay on a thread, ended when it is asked for."""

    def __init__(self, relay: Relay, stop: threading.Event, thread: threading.Thread) -> None:
        super().__init__()
        self._relay, self._stop, self._thread = relay, stop, thread
        self.callback(self.finish)

    def finish(self) -> Relay:
        """End it; all that it recorded is delivered."""
        self._stop.set()
        self._thread.join()
        return self._relay


def relaying(live: str, kept: str, url: str, folder: Path) -> "Relaying":
    """Follow what a vLLM on this host will publish."""
    sockets = Sockets(live, kept, "kv", Dialect.VLLM)
    settings = AgentSettings(engine="outside", transport=url, ring_dir=folder / "rings", close_timeout_ms=20_000)
    relay = Relay(
        sockets, lambda rank: Recorder.start(msgspec.structs.replace(settings, rank=rank)), key=KEY, dialect=Dialect.VLLM
    )
    stop = threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop,), name="test-relay")
    thread.start()
    return Relaying(relay, stop, thread)


def rows(collector: RunningCollector, query: str) -> list[list[Any]]:
    """The rows of a question to the collector."""
    done = kvtrail("sql", query, "--json", "--rows", "100000", "--url", collector.url)

    assert 0 == done.returncode, done.stderr

    found: list[list[Any]] = msgspec.json.decode(done.stdout)["rows"]
    return found


def resident(collector: RunningCollector, engine: str) -> set[int]:
    """The blocks on the GPU of an engine, by fold over what was recorded."""
    query = f"""SELECT DISTINCT CAST(block AS VARCHAR) FROM residency JOIN streams USING (stream_id)
        WHERE engine = '{engine}' AND tier = 0 AND ended_by = 'open'"""  # noqa: S608 - a constant of the test
    return {int(row[0]) for row in rows(collector, query)}


def unaccounted(collector: RunningCollector, engines: set[str]) -> list[int]:
    """What nobody accounts for, of each stream of some engines; others may try a port that was another collector's before."""
    done = kvtrail("loss", "--json", "--url", collector.url)
    streams: list[dict[str, Any]] = msgspec.json.decode(done.stdout)["streams"]
    return [stream["unaccounted"] for stream in streams if stream["engine"] in engines]


def test_what_is_resident_is_what_vllm_holds(observed: Observed) -> None:
    """By fold over its own events, from inside and from outside, the GPU holds the blocks that vLLM's prefix cache finds."""
    expected = {int(block_of(KEY, one)) for one in observed.answer["resident"]}

    assert expected
    assert expected == set(observed.relay.resident())
    assert expected == resident(observed.collector, "outside")
    assert expected == resident(observed.collector, "inside")


def test_every_request_is_there_and_the_books_balance(observed: Observed) -> None:
    """Each request that vLLM answered is stored whole, in one tenant, whose name is nowhere; produced = stored + dropped."""
    query = """SELECT count(*), count(first_token_ns), count(ended_ns), count(DISTINCT ns), sum(output_tokens) FROM requests
        JOIN streams USING (stream_id) WHERE engine = 'inside'"""
    total = PROMPTS * ROUNDS
    texts = rows(observed.collector, 'SELECT "text" FROM events WHERE "text" IS NOT NULL')

    assert [[total, total, total, 1, total * 8]] == rows(observed.collector, query)
    assert {0} == set(unaccounted(observed.collector, {"inside", "outside"}))
    assert not any("tenant-a" in str(text) for text in texts)


def test_a_request_that_loaded_has_storage_in_its_ledger(observed: Observed) -> None:
    """`why` of a request whose prefix the inner connector brought: the storage's time is a part, and parts add up."""
    query = """SELECT "text" FROM requests r JOIN streams USING (stream_id) WHERE engine = 'inside' AND EXISTS
        (SELECT 1 FROM ops o WHERE o.stream_id = r.stream_id AND o.req = r.req AND o.dst = 0 AND o.outcome = 2) LIMIT 1"""
    name = str(rows(observed.collector, query)[0][0])
    done = kvtrail("why", name, "--engine", "inside", "--json", "--url", observed.collector.url)
    why = msgspec.json.decode(done.stdout)
    storage = [part for part in why["parts"] if part["component"] == "storage_read"]

    assert 0 == done.returncode, done.stderr
    assert [("nvme", True)] == [(part["tier"], part["ns"] > 0) for part in storage]
    assert why["ttft_ns"] == sum(part["ns"] for part in why["parts"])


def test_what_was_evicted_is_the_cause_of_a_miss(observed: Observed) -> None:
    """The GPU was too small: misses name the evictions that made them, and each of those is there."""
    query = """SELECT count(*), count(e.id) FROM events m LEFT JOIN events e ON e.stream_id = m.stream_id AND e.id = m.cause
        AND kind_name(e.kind) = 'evicted' WHERE kind_name(m.kind) = 'prefix_miss' AND m.cause IS NOT NULL"""
    missed, known = rows(observed.collector, query)[0]
    evictions = (
        "SELECT count(*) FROM events JOIN streams USING (stream_id) WHERE engine = 'inside' AND kind_name(kind) = 'evicted'"
    )

    assert missed == known
    assert 0 < rows(observed.collector, evictions)[0][0]


def test_nothing_of_ours_failed(observed: Observed) -> None:
    """Not one step of the attachment went wrong in a real vLLM."""
    assert "a step failed" not in observed.answer["log"]
    assert [[0]] == rows(observed.collector, "SELECT count(*) FROM events WHERE kind_name(kind) = 'error'")


def test_answers_are_those_of_an_engine_without_us(
    observed: Observed, engines_python: Path, model: Path, tmp_path: Path
) -> None:
    """The same prompts give the same tokens where ExampleConnector is used by itself."""
    spec = {
        "model": str(model),
        "connector": connector(tmp_path / "store", None),
        "prompts": prompts(PROMPTS),
        "rounds": 1,
        "blocks": BLOCKS,
    }
    plain = run_script(engines_python, "offline.py", spec, XDG_STATE_HOME=os.fspath(tmp_path))

    assert plain["tokens"][0] == observed.answer["tokens"][0]
