"""Memory that cannot be pinned is told by name, and costs the host tier, not the engine."""

from pathlib import Path

import pytest
import torch
from kvtrail_engine.engine import Engine
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import Outcome
from kvtrail_engine.settings import Pinning
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Error, SwapOutQueued, TierDeclared
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import ErrorReason

from tests.engine.engines import ask, tiny


@pytest.mark.skipif(torch.cuda.is_available(), reason="memory is refused where no driver can pin it")
def test_an_engine_goes_on_without_the_host_that_it_cannot_pin(data_dir: Path, recorded: CollectingEmitter) -> None:
    """Limit, asked and got stand in one event; nothing is stored, what lies on nvme is still read, and answers are right."""
    with Engine(tiny(data_dir)) as engine:
        before = engine.submit(ask(1)).result(10)
        settle(engine)
        sink(engine, Tier.NVME)
        asked_bytes = 40 * engine.settings.block_bytes
    with Engine(tiny(data_dir, pinning=Pinning.ALWAYS), [recorded.as_emitter()]) as engine:
        after = engine.submit(ask(1)).result(10)
        new = engine.submit(ask(2)).result(10)
        settle(engine)
    told = [event for event in recorded.of(Error) if event.reason is ErrorReason.PIN_FAILED]
    text = told[0].text or ""
    asked = int(text.split("asked to pin ")[1].split()[0])

    assert [Tier.HOST] == [event.tier for event in told]
    assert asked_bytes <= asked <= asked_bytes + 4096
    assert "got 0; limit of locked memory" in text
    assert {Tier.GPU, Tier.NVME} == {event.tier for event in recorded.of(TierDeclared)}
    assert before.output == after.output
    assert {Tier.NVME: 4} == after.restored
    assert Outcome.FINISHED is new.outcome
    assert [] == recorded.of(SwapOutQueued)
    assert () == fold(recorded.events).violations


def test_nothing_is_pinned_where_that_is_not_wanted(data_dir: Path) -> None:
    """`never` leaves memory pageable, whatever the device, and keeps the host tier."""
    with Engine(tiny(data_dir, pinning=Pinning.NEVER)) as engine:
        engine.submit(ask(1)).result(10)

        assert not engine.host_arena.pinned
        assert 40 == engine.statistics().pools[Tier.HOST].slots
