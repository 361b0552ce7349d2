"""Restored equals computed, bit for bit; and a wrong block shows."""

from pathlib import Path

import pytest
from kvtrail_engine.proof import prove, settle
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Error, PrefillChunk, SwapInFailed
from kvtrail_schema.reasons import ErrorReason, PrefillReason, SwapInFailReason

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny, told
from tests.engine.records import stored_slots, swap_records


@pytest.mark.parametrize("tier", [Tier.HOST, Tier.NVME])
@pytest.mark.parametrize("tokens", [161, 300])
def test_restored_logits_are_the_computed_ones(data_dir: Path, start_engine: StartEngine, tier: Tier, tokens: int) -> None:
    """A restored prefix gives logits that are `torch.equal`, and two blocks swapped on purpose do not."""
    proof = prove(start_engine(tiny(data_dir)), ask(1, tokens), tier)

    assert proof.holds
    assert tokens // 32 == proof.restored_blocks


def test_swapped_records_on_nvme_are_refused_and_computed_again(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter
) -> None:
    """A file that holds the wrong record is noticed; the request is computed, with the same logits, and says why."""
    engine, spec = start_engine(tiny(data_dir)), ask(1, keep_logits=True)
    before = engine.submit(spec).result(10)
    settle(engine)
    engine.ask(engine.maintenance.demote_all)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    swap_records(engine, *stored_slots(engine, spec)[:2])
    after = engine.submit(spec).result(10)
    reasons = {event.reason for event in told(recorded.events, after.req) if isinstance(event, PrefillChunk)}

    assert before.output == after.output
    assert before.first_logits is not None
    assert after.first_logits is not None
    assert (before.first_logits == after.first_logits).all()
    checksum, called_off = SwapInFailReason.CHECKSUM, SwapInFailReason.CANCELLED
    assert [checksum, checksum, called_off, called_off] == [event.reason for event in recorded.of(SwapInFailed)]
    assert [event.reason for event in recorded.of(Error)] == [ErrorReason.CHECKSUM]
    assert PrefillReason.CHECKSUM in reasons


def test_the_same_seed_gives_the_same_model(tmp_path: Path, start_engine: StartEngine) -> None:
    """Answers are a function of seed and prompt alone; another seed is another model."""
    outputs = [
        start_engine(tiny(tmp_path / f"{number}", seed=seed)).submit(ask(1, output_tokens=8)).result(10).output
        for number, seed in enumerate((1, 1, 2))
    ]

    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]
