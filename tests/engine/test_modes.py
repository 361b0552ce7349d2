"""The five modes: the same engine with other tiers, and each is what its name says."""

from pathlib import Path

import pytest
from kvtrail_engine.errors import SettingsError
from kvtrail_engine.modes import Mode, mode_settings
from kvtrail_engine.proof import settle
from kvtrail_engine.settings import RemoteSettings, RestorePolicy
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import CapacitySampled, SwapInLoaded, SwapOutQueued, TierDeclared
from kvtrail_schema.lifecycle import fold

from tests.engine.conftest import StartEngine
from tests.engine.engines import ask, tiny

REMOTE = RemoteSettings("redis://127.0.0.1:1")


@pytest.mark.parametrize("mode", Mode)
def test_modes_change_tiers_and_policy_only(data_dir: Path, mode: Mode) -> None:
    """Everything that the outputs and the steps depend on stays; every mode can work."""
    base = tiny(data_dir)
    made = mode_settings(base, mode, REMOTE)
    made.check()

    assert (base.model, base.seed, base.step, base.gpu) == (made.model, made.seed, made.step, made.gpu)
    assert (mode is Mode.REMOTE) == (made.remote is not None)
    assert (mode in {Mode.NVME, Mode.RECOMPUTE}) == (made.nvme.slots > 0)
    assert (mode is Mode.GPU_ONLY) == (made.host.slots == 0)
    assert (mode is Mode.RECOMPUTE) == (made.restore_policy is RestorePolicy.RECOMPUTE)


def test_a_remote_must_be_given(data_dir: Path) -> None:
    """The mode cannot guess an address."""
    with pytest.raises(SettingsError, match="mode remote needs"):
        mode_settings(tiny(data_dir), Mode.REMOTE)


@pytest.mark.parametrize(
    ("mode", "source"), [(Mode.GPU_ONLY, None), (Mode.HOST, Tier.HOST), (Mode.NVME, Tier.NVME), (Mode.RECOMPUTE, None)]
)
def test_blocks_come_from_where_the_mode_says(
    data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter, mode: Mode, source: Tier | None
) -> None:
    """After the gpu has lost a prefix it comes from that tier, or from none; the answer is the same."""
    engine = start_engine(mode_settings(tiny(data_dir), mode))
    first = engine.submit(ask(1)).result(10)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    second = engine.submit(ask(1)).result(10)
    settle(engine)

    assert first.output == second.output
    assert {event.src for event in recorded.of(SwapInLoaded)} == ({source} if source else set())
    assert fold(recorded.events).violations == ()


def test_a_tier_that_is_off_is_not_spoken_of(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """No declaration, no sample, no op names a tier without slots."""
    engine = start_engine(mode_settings(tiny(data_dir), Mode.GPU_ONLY))
    engine.submit(ask(1)).result(10)

    assert [Tier.GPU] == [event.tier for event in recorded.of(TierDeclared)]
    assert {Tier.GPU} == {event.tier for event in recorded.of(CapacitySampled)}
    assert recorded.of(SwapOutQueued) == []


def test_host_alone_makes_room_by_itself(data_dir: Path, start_engine: StartEngine, recorded: CollectingEmitter) -> None:
    """With nothing below it, host lets its oldest blocks go, and takes the new ones."""
    engine = start_engine(mode_settings(tiny(data_dir), Mode.HOST))
    for number in range(16):
        engine.submit(ask(number, 4 * 32 + 1)).result(10)
    settle(engine)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    newest = engine.submit(ask(15, 4 * 32 + 1)).result(10)

    assert {Tier.HOST: 4} == newest.restored
    assert fold(recorded.events).violations == ()
