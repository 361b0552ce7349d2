"""The engine on a real device: the same code path, the same proof."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from kvtrail_engine.clock import SystemClock
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import prove
from kvtrail_engine.request import Outcome, RequestResult
from kvtrail_engine.runtime.copies import CopyStream
from kvtrail_engine.settings import DeviceChoice, PrefetchSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import StepFinished, SwapInLoaded
from kvtrail_schema.lifecycle import fold

from tests.engine.engines import ask, tiny

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("tier", [Tier.HOST, Tier.NVME])
def test_restored_logits_are_the_computed_ones_on_cuda(tmp_path: Path, tier: Tier) -> None:
    """A prefix restored onto the device gives logits that are `torch.equal`, and a swapped block does not."""
    recorded = CollectingEmitter()
    with Engine(replace(tiny(tmp_path), device=DeviceChoice.CUDA), [recorded.as_emitter()]) as engine:
        proof = prove(engine, ask(1, 300), tier)

        assert engine.device_label == "cuda"
    assert proof.holds
    assert all(event.pinned for event in recorded.of(SwapInLoaded))
    assert all(event.device_ns for event in recorded.of(StepFinished))


def bits(answer: RequestResult) -> bytes:
    """The logits of an answer's first token."""
    assert answer.first_logits is not None
    return answer.first_logits.tobytes()


def test_random_work_gives_the_bits_of_a_gpu_alone(tmp_path: Path) -> None:
    """Little room on every tier, cancels, prefetches and clears at random: what is answered equals an engine without tiers."""
    random, recorded = np.random.default_rng(5), CollectingEmitter()
    specs = [
        ask(int(random.integers(8)), int(random.integers(33, 320)), int(random.integers(1, 4)), keep_logits=True)
        for _ in range(150)
    ]
    off = TierSettings(slots=0)
    alone = replace(tiny(tmp_path / "alone"), device=DeviceChoice.CUDA, host=off, nvme=off, host_low_slots=0)
    with Engine(alone) as engine:
        expected = [engine.submit(spec).result(60) for spec in specs]
    small = replace(
        tiny(tmp_path / "tiers", prefetch=PrefetchSettings(window=16)),
        device=DeviceChoice.CUDA,
        host=TierSettings(slots=24, workers=2),
        op_blocks=3,
    )
    with Engine(small, [recorded.as_emitter()]) as engine:
        handles = []
        for spec in specs:
            handles.append(engine.submit(spec))
            if random.random() < 0.1:
                handles[-1].cancel()
            if random.random() < 0.2:
                engine.hint("s", specs[int(random.integers(len(specs)))], 50_000_000)
            if random.random() < 0.2:
                engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
        answers = [handle.result(60) for handle in handles]

    for one, other in zip(expected, answers, strict=True):
        if other.outcome is Outcome.FINISHED:
            assert one.output == other.output
            assert bits(one) == bits(other)
    assert recorded.of(SwapInLoaded)
    assert fold(recorded.events).violations == ()


def test_copies_are_there_when_finish_returns() -> None:
    """Pinned to device and back, on a stream apart from that of compute, which is busy meanwhile."""
    device, clock = torch.device("cuda"), SystemClock()
    stream = CopyStream(device, clock)
    source = torch.arange(1 << 22, dtype=torch.float32, pin_memory=True)
    near, back = torch.zeros(1 << 22, device=device), torch.zeros(1 << 22, pin_memory=True)
    torch.cuda.synchronize()
    busy = torch.randn(4096, 4096, device=device)
    for _ in range(20):
        busy = (busy @ busy).clamp_(-1, 1)
    for pairs in ([(near, source)], [(back, near)]):
        stream.start(pairs)
        stream.finish(lambda: None)

    assert torch.equal(source, back)
