"""The engine on a real device: the same code path, the same proof."""

from dataclasses import replace
from pathlib import Path

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import prove
from kvtrail_engine.settings import DeviceChoice
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import StepFinished, SwapInLoaded

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
