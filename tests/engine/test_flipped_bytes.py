"""Every byte of a record counts: whichever is wrong, the block is missed by its checksum, computed, and the answer is right.

The ordinary suite turns over each byte of a small record, and some of a usual one; with KVTRAIL_LONG=1 each of a usual one too.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import RequestResult, RequestSpec
from kvtrail_engine.settings import EngineSettings, ModelSettings, TierSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event, PrefillChunk, PrefixMiss, SwapInFailed
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import MissReason, PrefillReason, SwapInFailReason

from tests.engine.engines import tiny
from tests.engine.records import flip_byte, stored_slots

IS_LONG = bool(os.environ.get("KVTRAIL_LONG"))
BLOCKS = 16
FILES = NvmeSettings(direct=DirectIo.OFF)

pytestmark = pytest.mark.timeout(3600 if IS_LONG else 120)


def small(data_dir: Path) -> EngineSettings:
    """Blocks of 512 bytes, so that a record is three times that."""
    model = ModelSettings(layers=1, width=16, heads=2, kv_heads=1, hidden=16)
    return replace(tiny(data_dir, nvme_files=FILES), block_tokens=8, model=model)


def usual(data_dir: Path) -> EngineSettings:
    """Blocks as everywhere else."""
    return tiny(data_dir, nvme_files=FILES)


def on_nvme(engine: Engine, spec: RequestSpec) -> RequestResult:
    """Ask, and leave the prompt's blocks on nvme alone."""
    answer = engine.submit(spec).result(30)
    settle(engine)
    sink(engine, Tier.NVME)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    return answer


def bits(answer: RequestResult) -> bytes:
    """The logits of an answer's first token."""
    assert answer.first_logits is not None
    return answer.first_logits.tobytes()


def places(record_bytes: int, step: int) -> Iterator[list[int]]:
    """Every `step`-th byte of a record, and its last one, a few at a time."""
    wanted = sorted({*range(0, record_bytes, step), record_bytes - 1})
    for start in range(0, len(wanted), BLOCKS):
        yield wanted[start : start + BLOCKS]


def of_miss(events: Sequence[Event]) -> dict[BlockId, MissReason]:
    """The blocks that were missed in the end, and why."""
    return {event.block: event.reason for event in events if isinstance(event, PrefixMiss)}


@pytest.mark.parametrize(
    ("settings", "step"), [(small, 1), pytest.param(usual, 1 if IS_LONG else 257, id=f"usual-{1 if IS_LONG else 257}")]
)
def test_flipping_any_byte_of_any_record(data_dir: Path, settings: Callable[[Path], EngineSettings], step: int) -> None:
    """Each byte once, in one of a prompt's records: a miss with reason checksum, a recompute for it, the bits of before."""
    given = settings(data_dir)
    prompt = np.random.default_rng(1).integers(0, 1024, BLOCKS * given.block_tokens + 1, dtype=np.int64)
    spec, turned = RequestSpec("r", prompt, 1, keep_logits=True), 0
    random = np.random.default_rng(2)
    recorded = CollectingEmitter()
    with Engine(replace(given, gpu=TierSettings(slots=40)), [recorded.as_emitter()]) as engine:
        first, blocks = on_nvme(engine, spec), engine.blocks_of(spec)
        for ats in places(engine.nvme.store.geometry.record_bytes, step):
            slots = stored_slots(engine, spec)
            for slot, at in zip(slots, ats, strict=False):
                flip_byte(engine, slot, at, int(random.integers(1, 256)))
            mark = len(recorded.events)
            after = on_nvme(engine, spec)
            events = recorded.events[mark:]
            wrong = {block.id: MissReason.CHECKSUM for block in blocks[: len(ats)]}
            failed = {event.block: event.reason for event in events if isinstance(event, SwapInFailed)}
            computed = {event.reason for event in events if isinstance(event, PrefillChunk)}
            turned += len(ats)

            assert wrong == of_miss(events), ats
            assert dict.fromkeys(wrong, SwapInFailReason.CHECKSUM).items() <= failed.items(), ats
            assert PrefillReason.CHECKSUM in computed, ats
            assert first.output == after.output, ats
            assert bits(first) == bits(after), ats
    assert turned >= engine.nvme.store.geometry.record_bytes // step
