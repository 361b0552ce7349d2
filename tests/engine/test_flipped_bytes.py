"""Every byte of a record counts: whichever is wrong, the block is missed by its checksum, computed, and the answer is right.

The ordinary suite turns over each byte of a small record, and some of a usual one; with KVTRAIL_LONG=1 each of a usual one too.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import redis
from kvtrail_engine.engine import Engine
from kvtrail_engine.redis_process import RedisProcess
from kvtrail_engine.settings import EngineSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import Slot

from tests.engine.flips import assert_all_noticed, bits, left_on, long_prompt, places, small, usual
from tests.engine.records import flip_byte, stored_slots
from tests.redis_server import redis_server, remote_of

IS_LONG = bool(os.environ.get("KVTRAIL_LONG"))
STEP = 1 if IS_LONG else 257

pytestmark = pytest.mark.timeout(3600 if IS_LONG else 120)


@pytest.mark.parametrize(("settings", "step"), [(small, 1), pytest.param(usual, STEP, id=f"usual-{STEP}")])
def test_flipping_any_byte_of_any_record(
    data_dir: Path, recorded: CollectingEmitter, settings: Callable[[Path], EngineSettings], step: int
) -> None:
    """Each byte once, in one of a prompt's records: a miss with reason checksum, a recompute for it, the bits of before."""
    given, random, turned = settings(data_dir), np.random.default_rng(2), 0
    spec = long_prompt(given)
    with Engine(given, [recorded.as_emitter()]) as engine:
        first, blocks = left_on(engine, Tier.NVME, spec), engine.blocks_of(spec)
        for ats in places(engine.nvme.store.geometry.record_bytes, step):
            for slot, at in zip(stored_slots(engine, spec), ats, strict=False):
                flip_byte(engine, slot, at, int(random.integers(1, 256)))
            mark, turned = len(recorded.events), turned + len(ats)
            after = left_on(engine, Tier.NVME, spec)

            assert_all_noticed(recorded.events[mark:], {block.id for block in blocks[: len(ats)]})
            assert (first.output, bits(first)) == (after.output, bits(after)), ats
    assert turned >= engine.nvme.store.geometry.record_bytes // step


def flip_on_remote(client: "redis.Redis", slot: Slot, at: int, mask: int) -> None:
    """Change one byte of a record that a server holds."""
    key = next(key for key in client.scan_iter(f"kvtrail:*:{slot}"))
    old = cast("bytes", client.getrange(key, at, at))
    client.setrange(key, at, bytes([old[0] ^ mask]))


def remote_slots(engine: Engine, blocks: int) -> list[Slot]:
    """The slots of a prompt's blocks on the remote, in order."""
    found = [engine.context.pools[Tier.REMOTE].find(block.id) for block in engine.blocks_of(long_prompt(engine.settings))]
    return [copy.slot for copy in found[:blocks] if copy is not None]


def test_flipping_any_byte_on_the_remote(data_dir: Path, private_dir: Path, recorded: CollectingEmitter) -> None:
    """What a server gives back is believed no more than what a disk does."""
    with redis_server(private_dir / "redis") as server:
        given = small(data_dir, remote=remote_of(server), nvme=TierSettings(slots=0))
        with Engine(given, [recorded.as_emitter()]) as engine:
            turn_over(engine, server, recorded)


def turn_over(engine: Engine, server: RedisProcess, recorded: CollectingEmitter) -> None:
    """Each byte of a record on the remote, or some of them."""
    spec, random = long_prompt(engine.settings), np.random.default_rng(3)
    first, blocks = left_on(engine, Tier.REMOTE, spec), engine.blocks_of(spec)
    assert engine.remote is not None
    record_bytes = engine.remote.statistics().records.record_bytes
    with redis.Redis(port=server.port, password=server.password_file.read_text()) as client:
        for ats in places(record_bytes, 1 if IS_LONG else 7):
            for slot, at in zip(remote_slots(engine, len(ats)), ats, strict=True):
                flip_on_remote(client, slot, at, int(random.integers(1, 256)))
            mark = len(recorded.events)
            after = left_on(engine, Tier.REMOTE, spec)

            assert_all_noticed(recorded.events[mark:], {block.id for block in blocks[: len(ats)]})
            assert (first.output, bits(first)) == (after.output, bits(after)), ats
