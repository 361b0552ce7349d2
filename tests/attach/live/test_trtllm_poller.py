"""A poller drains a TensorRT-LLM engine, whatever version answers, and nothing that it says ends the poller."""

import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kvtrail_agent.attach.trtllm import watch
from kvtrail_agent.attach.trtllm_poller import TrtllmPoller
from kvtrail_agent.attach.trtllm_sources import TrtllmCalls, TrtllmServer
from kvtrail_agent.errors import TransportUnavailable
from kvtrail_agent.settings import AgentSettings
from kvtrail_schema.clock import SystemClock
from kvtrail_schema.events import BlockCreated, CounterSampled, Error, RequestArrived, StepFinished

from tests.attach.importers.cases import TRTLLM, trt_block, trt_event
from tests.attach.importers.payloads import KEY
from tests.attach.live.engines import Drained, Recorded, trtllm_server

STORED = trt_event(1, {"type": "stored", "parent_hash": None, "blocks": [trt_block(5)]})
CREATED = trt_event(0, {"type": "created", "num_blocks_per_cache_level": [8, 2]})


def poller_of(source: Any, recorded: Recorded) -> TrtllmPoller:
    """A poller into memory."""
    return TrtllmPoller(source, recorded.rows, key=KEY, clock=SystemClock())


def test_a_server_is_drained(tmp_path: Path) -> None:
    """Events, iterations and requests of a real server come into streams, events with the time at which they were read."""
    engine, recorded = Drained(), Recorded(tmp_path)
    began_ns = time.monotonic_ns()
    engine.put(CREATED, STORED)
    engine.put(TRTLLM.records[6], path="/metrics")
    engine.put(TRTLLM.records[7], path="/perf_metrics")
    with trtllm_server(engine) as url:
        poller = poller_of(TrtllmServer(url), recorded)
        assert 2 == poller.poll()
        assert 0 == poller.poll()
    recorded.rows.close()
    events = recorded.transport.events
    (block,) = [event for event in events if isinstance(event, BlockCreated)]

    assert began_ns <= block.t_ns <= time.monotonic_ns()
    assert {StepFinished, RequestArrived} <= {type(event) for event in events}
    assert any(isinstance(event, CounterSampled) and event.text.startswith("estimate.") for event in events)
    assert ("POST", "/kv_cache_events") == engine.asked[0]


def test_a_version_that_wants_get(tmp_path: Path) -> None:
    """Where POST is not there, GET is asked from then on."""
    engine, recorded = Drained(), Recorded(tmp_path)
    engine.refuse_post = True
    engine.put(STORED)
    with trtllm_server(engine) as url:
        poller = poller_of(TrtllmServer(url), recorded)
        assert 1 == poller.poll()
        poller.poll()
    recorded.rows.close()

    assert 1 == engine.asked.count(("POST", "/kv_cache_events"))
    assert 2 == engine.asked.count(("GET", "/kv_cache_events"))


def test_a_server_that_goes_away(tmp_path: Path) -> None:
    """Nobody there, then busy, then back: the poller waits and goes on, and ends when it is told to."""
    engine, recorded, stop = Drained(), Recorded(tmp_path), threading.Event()
    engine.status = 503
    with trtllm_server(engine) as url:
        poller = poller_of(TrtllmServer(url), recorded)
        thread = threading.Thread(target=poller.run, args=(stop,), name="test-poller")
        thread.start()
        while poller.tally.failures < 2:
            time.sleep(0.01)
        engine.put(STORED)
        engine.status = 200
        while not poller.tally.events:
            time.sleep(0.01)
        stop.set()
        thread.join(20)

    assert not thread.is_alive()
    assert 1 == sum(isinstance(event, BlockCreated) for event in recorded.transport.events)


def test_answers_that_are_none(tmp_path: Path) -> None:
    """An event that is broken is told in the stream; the ones beside it are recorded."""
    engine, recorded = Drained(), Recorded(tmp_path)
    engine.put(CREATED, 7, {"event_id": "x"}, trt_event(1, {"type": "stored", "blocks": 3}), {**STORED, "event_id": 2})
    with trtllm_server(engine) as url:
        poller_of(TrtllmServer(url), recorded).poll()
    recorded.rows.close()

    assert 3 == recorded.rows.quarantined
    assert 1 == sum(isinstance(event, BlockCreated) for event in recorded.transport.events)
    assert 1 == sum(isinstance(event, Error) for event in recorded.transport.events)


def test_a_restart_is_another_epoch(tmp_path: Path) -> None:
    """An engine whose numbers begin anew gets a recorder, and an epoch, of its own; what it lost between is said."""
    engine, recorded = Drained(), Recorded(tmp_path)
    engine.put(CREATED, trt_event(5, {"type": "removed", "block_hashes": [1]}), CREATED, STORED)
    with trtllm_server(engine) as url:
        poller_of(TrtllmServer(url), recorded).poll()
    recorded.rows.close()

    assert 2 == len(recorded.origins) == len({header.epoch for header in recorded.transport.headers})
    assert 4 == recorded.rows.lost


def test_clocks_that_do_not_meet_have_epochs_of_their_own(tmp_path: Path) -> None:
    """Events, iterations and requests are three streams, and stay the same three, in whatever turn they come."""
    engine, recorded = Drained(), Recorded(tmp_path)
    with trtllm_server(engine) as url:
        poller = poller_of(TrtllmServer(url), recorded)
        for number in range(3):
            engine.put({**STORED, "event_id": number})
            engine.put(TRTLLM.records[6], path="/metrics")
            engine.put(TRTLLM.records[7], path="/perf_metrics")
            poller._figures_ns = 0
            poller.poll()
    recorded.rows.close()

    assert ["", "iterations", "requests"] == [origin.series for origin in recorded.origins]


class Llm:
    """An `LLM` with the documented call: gives what there is, and in some versions raises where there is nothing."""

    def __init__(self, empty: Exception | None = None) -> None:
        self.held: list[Any] = [CREATED, STORED]
        self._empty = empty

    def get_kv_cache_events(self, _timeout: float) -> list[Any]:
        """Drain."""
        found, self.held = self.held, []
        if not found and self._empty is not None:
            raise self._empty
        return found


@pytest.mark.parametrize("empty", [None, IndexError(), queue.Empty(), TimeoutError()], ids=repr)
def test_the_python_call(tmp_path: Path, empty: Exception | None) -> None:
    """An `LLM` of this process is drained; that it has nothing is no error."""
    recorded = Recorded(tmp_path)
    poller = poller_of(TrtllmCalls(Llm(empty)), recorded)

    assert [2, 0] == [poller.poll(), poller.poll()]
    recorded.rows.close()


def test_the_python_call_fails() -> None:
    """What else the engine raises is "not now", and never comes through."""
    llm = Llm(RuntimeError("shut down"))
    llm.held = []

    with pytest.raises(TransportUnavailable, match="shut down"):
        TrtllmCalls(llm).events()


def test_watch_ends(tmp_path: Path, private_dir: Path) -> None:
    """The one line beside an `LLM` starts a thread, and its end waits for what was read."""
    llm = Llm()
    (tmp_path / "out").mkdir()
    rings, out = private_dir / "rings", f"file://{tmp_path}/out"
    settings = AgentSettings(engine="t", transport=out, ring_dir=rings, close_timeout_ms=60_000)
    watching = watch(llm, settings)
    while llm.held:
        time.sleep(0.01)
    watching.close(60)

    assert 2 == watching.poller.tally.events
    assert not [thread for thread in threading.enumerate() if thread.name == "kvtrail-trtllm"]
