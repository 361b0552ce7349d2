"""A wrapped connector of TensorRT-LLM is the connector that it was, and its lookups, loads and saves are recorded."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kvtrail_agent.attach import trtllm_connector
from kvtrail_agent.attach.trtllm_connector import watched_scheduler, watched_worker
from kvtrail_agent.attach.trtllm_watch import Ids, SchedulerWatch, WorkerWatch
from kvtrail_agent.errors import SettingsInvalid
from kvtrail_agent.testing import RecordingTransport, recorder_for_tests
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import (
    CounterSampled,
    LookupFinished,
    SwapInLoaded,
    SwapInQueued,
    SwapInStarted,
    SwapOutQueued,
    SwapOutWritten,
)

from tests.attach.importers.payloads import KEY


class InnerScheduler:
    """A connector's scheduler with the documented calls; request 1 has 64 tokens outside the GPU."""

    def __init__(self, llm_args: object) -> None:
        self.llm_args = llm_args

    def build_connector_meta(self, _output: object) -> str:
        """A call that is not watched."""
        return "meta"

    def get_num_new_matched_tokens(self, request: Any, _computed: int) -> tuple[int, bool]:
        """What the connector has."""
        return (64 if request.request_id == 1 else 0), True

    def update_state_after_alloc(self, _request: Any, _block_ids: list[int]) -> None:
        """Blocks are there."""

    def request_finished(self, _request: Any, _cache_block_ids: list[int]) -> bool:
        """Saves go on."""
        return True


class InnerWorker:
    """A connector's worker with the documented calls."""

    def __init__(self, llm_args: object) -> None:
        self.llm_args = llm_args

    def start_load_kv(self, stream: object) -> object:
        """Loads begin."""
        return stream

    def wait_for_layer_load(self, layer: int, _stream: object) -> None:
        """The second layer fails."""
        if layer == 1:
            raise RuntimeError("the disk is gone")

    def get_finished(self, finished: list[int], started: list[int]) -> tuple[list[int], list[int]]:
        """Everything is done at once."""
        return finished, started


class Odd:
    """A request of a version that nobody knows: it has no id."""


def test_a_load_and_a_save(tmp_path: Path) -> None:
    """Scheduler and worker tell one load and one save of one request under the same ids; what they answer is the inner's."""
    transport = RecordingTransport()
    recorder = recorder_for_tests(transport, tmp_path / "rings")
    scheduler = watched_scheduler(InnerScheduler, SchedulerWatch(recorder, Ids(KEY), Tier.NVME))("args")
    worker = watched_worker(InnerWorker, WorkerWatch(recorder, Ids(KEY), Tier.NVME))("args")
    request = SimpleNamespace(request_id=1, prompt_len=100)

    assert (64, True) == scheduler.get_num_new_matched_tokens(request, 32)
    scheduler.update_state_after_alloc(request, [4, 5])
    assert "stream" == worker.start_load_kv("stream")
    assert ([], [1]) == worker.get_finished([], [1])
    assert scheduler.request_finished(request, [4, 5]) is True
    worker.get_finished([1], [])
    assert "meta" == scheduler.build_connector_meta(None)
    recorder.close()
    names = ("LookupFinished", "SwapIn", "SwapOut")
    events = [event for event in transport.events if type(event).__name__.startswith(names)]
    lookup, *moves = events

    assert isinstance(lookup, LookupFinished)
    assert (100, 32, 64) == (lookup.tokens, lookup.tokens_gpu, lookup.tokens_nvme)
    assert [SwapInQueued, SwapInStarted, SwapInLoaded, SwapOutQueued, SwapOutWritten] == [type(event) for event in moves]
    assert {lookup.req} == {getattr(event, "req", None) for event in moves}
    assert [3, 2] == [sum(getattr(e, "op", 0) == op for e in moves) for op in (Ids(KEY).load(1), Ids(KEY).save(1))]
    assert any(isinstance(event, CounterSampled) and "start_load" in event.text for event in transport.events)


def test_a_request_with_nothing_to_load(tmp_path: Path) -> None:
    """Where the connector has nothing, no load is told."""
    transport = RecordingTransport()
    recorder = recorder_for_tests(transport, tmp_path / "rings")
    scheduler = watched_scheduler(InnerScheduler, SchedulerWatch(recorder, Ids(KEY), Tier.NVME))("args")
    request = SimpleNamespace(request_id=2)
    scheduler.get_num_new_matched_tokens(request, 0)
    scheduler.update_state_after_alloc(request, [4])
    recorder.close()

    assert not any(isinstance(event, SwapInQueued) for event in transport.events)


def test_what_the_connector_raises_comes_through(tmp_path: Path) -> None:
    """An error of the inner connector is the engine's affair, unchanged."""
    recorder = recorder_for_tests(RecordingTransport(), tmp_path / "rings")
    worker = watched_worker(InnerWorker, WorkerWatch(recorder, Ids(KEY), Tier.NVME))("args")

    with pytest.raises(RuntimeError, match="disk is gone"):
        worker.wait_for_layer_load(1, None)
    recorder.close()


def test_our_own_errors_do_not(tmp_path: Path) -> None:
    """A request of an unknown version makes our step fail, counted; the engine gets its answer."""
    recorder = recorder_for_tests(RecordingTransport(), tmp_path / "rings")
    watch = SchedulerWatch(recorder, Ids(KEY), Tier.NVME)
    scheduler = watched_scheduler(InnerScheduler, watch)("args")

    assert scheduler.request_finished(Odd(), None) is True
    assert 1 == watch.guard.errors
    recorder.close()


def test_without_settings_it_runs_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine and no transport named: the connector does its work as before."""
    monkeypatch.delenv("KVTRAIL_ENGINE", raising=False)
    monkeypatch.delenv("KVTRAIL_TRANSPORT", raising=False)
    monkeypatch.setenv("KVTRAIL_INNER_CONNECTOR", f"{__name__}:InnerScheduler:InnerWorker")
    module = SimpleNamespace(InnerScheduler=InnerScheduler, InnerWorker=InnerWorker)
    monkeypatch.setitem(sys.modules, __name__, module)
    scheduler, worker = trtllm_connector.Scheduler("args"), trtllm_connector.Worker("args")

    assert (64, True) == scheduler.get_num_new_matched_tokens(SimpleNamespace(request_id=1), 0)
    assert "stream" == worker.start_load_kv("stream")
    assert ([], []) == worker.get_finished([], [])


def test_the_inner_connector_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a connector to watch there is nothing to run: an error that says what to set."""
    monkeypatch.setenv("KVTRAIL_INNER_CONNECTOR", "only.a.module")

    with pytest.raises(SettingsInvalid, match="SchedulerClass"):
        _ = trtllm_connector.Scheduler
