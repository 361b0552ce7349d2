"""Engines in processes of their own, made to be killed. Imported by the process that they are forked from."""

import itertools
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from kvtrail_engine.engine import Engine
from kvtrail_engine.settings import EngineSettings, TierSettings
from kvtrail_schema.enums import Tier

from tests.engine.engines import BLOCK, ask, tiny

PROMPTS = 12
PROMPT_BLOCKS = 9


def settings(data_dir: Path) -> EngineSettings:
    """An engine whose host holds little, so that most of what it does is to write to nvme and to read from there."""
    return tiny(data_dir, host=TierSettings(slots=24), host_low_slots=16, nvme=TierSettings(slots=160, workers=4), op_blocks=4)


def serve_for_ever(data_dir: Path, seed: int, begun: Connection) -> None:
    """Ask for prompts at random, several at once; says once that blocks have reached nvme. Ends by being killed."""
    random = np.random.default_rng(seed)
    with Engine(settings(data_dir)) as engine:
        for turn in itertools.count():
            numbers = random.integers(PROMPTS, size=4)
            for handle in [engine.submit(ask(int(number), PROMPT_BLOCKS * BLOCK, 1)) for number in numbers]:
                handle.result(30)
            if engine.statistics().pools[Tier.NVME].copies > 20 and turn > 2:
                begun.send(turn)
