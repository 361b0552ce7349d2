"""A small language for bytes that are turned over in stored records."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from kvtrail_engine.engine import Engine
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.proof import settle, sink
from kvtrail_engine.request import RequestResult, RequestSpec
from kvtrail_engine.settings import EngineSettings, ModelSettings
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import Event, PrefillChunk, PrefixMiss, SwapInFailed
from kvtrail_schema.identity import BlockId
from kvtrail_schema.reasons import MissReason, PrefillReason, SwapInFailReason

from tests.engine.engines import tiny

BLOCKS = 16
FILES = NvmeSettings(direct=DirectIo.OFF)


def small(data_dir: Path, **changes: Any) -> EngineSettings:
    """Blocks of 512 bytes, so that a record is hardly more than its frame."""
    model = ModelSettings(layers=1, width=16, heads=2, kv_heads=1, hidden=16)
    return replace(tiny(data_dir, nvme_files=FILES, **changes), block_tokens=8, model=model)


def usual(data_dir: Path) -> EngineSettings:
    """Blocks as everywhere else."""
    return tiny(data_dir, nvme_files=FILES)


def long_prompt(settings: EngineSettings) -> RequestSpec:
    """A prompt of `BLOCKS` blocks that may all be restored."""
    tokens = np.random.default_rng(1).integers(0, 1024, BLOCKS * settings.block_tokens + 1, dtype=np.int64)
    return RequestSpec("r", tokens, 1, keep_logits=True)


def left_on(engine: Engine, tier: Tier, spec: RequestSpec) -> RequestResult:
    """Ask, and leave the prompt's blocks on one tier alone."""
    answer = engine.submit(spec).result(30)
    settle(engine)
    sink(engine, tier)
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


def assert_all_noticed(events: Sequence[Event], wrong: set[BlockId]) -> None:
    """Just these blocks were missed, with reason checksum, after their loads had failed with it, and were computed."""
    missed = {event.block: event.reason for event in events if isinstance(event, PrefixMiss)}
    failed = {event.block: event.reason for event in events if isinstance(event, SwapInFailed)}

    assert dict.fromkeys(wrong, MissReason.CHECKSUM) == missed
    assert dict.fromkeys(wrong, SwapInFailReason.CHECKSUM).items() <= failed.items()
    assert PrefillReason.CHECKSUM in {event.reason for event in events if isinstance(event, PrefillChunk)}
