"""A collector that runs for one test, with a few requests in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kvtrail_agent.recorder import Recorder
from kvtrail_agent.settings import AgentSettings
from kvtrail_collector.testing import RunningCollector, running_collector
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import OpId, RequestId, StepId
from kvtrail_schema.reasons import PrefillReason, WaitReason

MS = 1_000_000


@pytest.fixture
def collector() -> Iterator[RunningCollector]:
    """An empty collector on a free port."""
    with running_collector() as running:
        yield running


@pytest.fixture
def filled(collector: RunningCollector, private_dir: Path) -> RunningCollector:
    """A collector that holds one request which waited for nvme: queue 10 ms, read 15 ms, copy 4 ms, prefill 7 ms."""
    settings = AgentSettings(engine="cli", transport=collector.url, ring_dir=private_dir / "rings")
    recorder = Recorder.start(settings)
    req, op = RequestId(7), OpId(1)
    recorder.manifest_declared('{"device": "cpu-emulated"}')
    recorder.request_arrived(req, 64, text="chat-7", t_ns=1 * MS)
    recorder.request_waiting(req, WaitReason.KV_LOAD, t_ns=2 * MS)
    recorder.swap_in_queued(op, Tier.NVME, Tier.GPU, req=req, recompute_estimate_ns=12 * MS, t_ns=2 * MS)
    recorder.swap_in_started(op, Tier.NVME, Tier.GPU, req=req, t_ns=12 * MS)
    recorder.swap_in_loaded(
        op, Tier.NVME, Tier.GPU, req=req, bytes=4096, queue_ns=10 * MS, io_ns=15 * MS, copy_ns=4 * MS, t_ns=31 * MS
    )
    recorder.request_admitted(req, t_ns=31 * MS)
    recorder.step_started(StepId(1), t_ns=31 * MS)
    recorder.step_finished(StepId(1), 64, t_ns=38 * MS)
    recorder.prefill_chunk(req, StepId(1), 64, PrefillReason.NEW, t_ns=38 * MS)
    recorder.request_first_token(req, t_ns=38 * MS)
    recorder.request_finished(req, 1, t_ns=39 * MS)

    assert recorder.close(60)
    return collector
